import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Crore, CroreError, open } from '../../dist/index.js';
import { openOutbox, type Relay, relay } from '../../dist/outbox/index.js';
import { type AppDatabase, openApp, transaction } from '../support/sqlite.js';
import { until } from '../support/wait.js';

describe('an outbox', () => {
  let dir: string;
  let file: string;
  let db: AppDatabase;
  let crore: Crore;
  const relays: Relay[] = [];
  const errors: string[] = [];

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'crore-outbox-'));
    file = join(dir, 'app.db');
    db = openApp(file);
    crore = await open('sqlite::memory:');
  });
  afterEach(async () => {
    for (const one of relays.splice(0)) await one.close();
    await crore.close();
    db.close();
    errors.length = 0;
    rmSync(dir, { recursive: true });
  });
  const onError = (error: Error) => void errors.push(`${(error as CroreError).code}: ${error.message}`);
  const start = (connection: AppDatabase = db, target = crore, options: object = {}) => {
    const one = relay(connection, target, { onError, ...options });
    relays.push(one);
    return one;
  };
  const waiting = async (queue: string, target = crore) =>
    (await target.queue(queue).list('ready', { limit: 1_000 })).jobs.map((job) => job.payload);

  it('sends what was committed, and nothing that was rolled back', async () => {
    const outbox = openOutbox(db);
    db.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)');
    const one = start();
    expect(() =>
      transaction(db, () => {
        db.exec('INSERT INTO orders VALUES (1)');
        outbox.add('mails', 'never');
        throw new Error('changed my mind');
      }),
    ).toThrow('changed my mind');
    const sent = transaction(db, () => {
      db.exec('INSERT INTO orders VALUES (2)');
      return outbox.add('mails', { order: 2 });
    });
    await one.drained();
    expect(await waiting('mails')).toEqual([{ order: 2 }]);
    expect(await crore.queue('mails').get(sent.id)).toMatchObject({ state: 'ready' });
    expect(outbox.count()).toBe(0);
  });

  it('keeps the order of each queue, whatever the batch size', async () => {
    const outbox = openOutbox(db);
    transaction(db, () => {
      for (let i = 0; i < 500; i++) outbox.add(i % 2 ? 'odd' : 'even', i);
    });
    expect([outbox.count(), outbox.count('odd'), outbox.count('none')]).toEqual([500, 250, 0]);
    await start(db, crore, { batch: 7 }).drained();
    expect(await waiting('even')).toEqual(Array.from({ length: 250 }, (_x, i) => 2 * i));
    expect(await waiting('odd')).toEqual(Array.from({ length: 250 }, (_x, i) => 2 * i + 1));
    expect(errors).toEqual([]);
  });

  it('transfers all options of a job, and its bytes', async () => {
    const outbox = openOutbox(db);
    const bytes = Uint8Array.from({ length: 256 }, (_x, i) => i);
    const at = Date.now() + 3_600_000;
    outbox.add('jobs', bytes, { id: 'bytes', priority: 3, headers: { trace: 'é' }, attempts: 2 });
    outbox.add('jobs', { text: 'a\u0000b 😀' }, { id: 'later', delay: '1h' });
    outbox.add('jobs', 'x', { id: 'twice', unique: 'k' });
    outbox.add('jobs', 'x', { id: 'again', unique: 'k' });
    outbox.add('jobs', 'x', { id: 'expires', expires: '1h' });
    await start().drained();
    const queue = crore.queue('jobs');
    const sent = await queue.get('bytes');
    expect(Buffer.from(sent!.payload as Uint8Array)).toEqual(Buffer.from(bytes));
    expect(sent).toMatchObject({ priority: 3, headers: { trace: 'é' }, maxAttempts: 2 });
    const later = await queue.get('later');
    expect(later).toMatchObject({ state: 'scheduled', payload: { text: 'a\u0000b 😀' } });
    expect(Math.abs(later!.runAt! - at)).toBeLessThan(30_000);
    expect(await queue.get('twice')).toBeDefined();
    expect(await queue.get('again')).toBeUndefined();
  });

  it('sends nothing from a transaction that is still open on a shared connection', async () => {
    const outbox = openOutbox(db);
    const one = start();
    await one.drained();
    db.exec('BEGIN');
    outbox.add('mails', 'perhaps');
    await expect(one.drained({ timeout: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    db.exec('ROLLBACK');
    transaction(db, () => outbox.add('mails', 'surely'));
    await one.drained();
    expect(await waiting('mails')).toEqual(['surely']);
  });

  it('starts while another connection is writing', async () => {
    openOutbox(db).add('mails', 'from before');
    const own = openApp(file);
    own.exec('PRAGMA busy_timeout = 0');
    db.exec('BEGIN IMMEDIATE');
    const one = start(own);
    db.exec('COMMIT');
    await one.drained();
    expect(await waiting('mails')).toEqual(['from before']);
    expect(errors).toEqual([]);
  });

  it('notices commits by other connections', async () => {
    openOutbox(db);
    const other = openApp(file);
    const outbox = openOutbox(other);
    const one = start(db, crore, { every: '1h' });
    await one.drained();
    outbox.add('mails', 'from elsewhere');
    await until('the job arrives', async () => (await crore.queue('mails').count()).ready === 1);
    other.close();
  });

  it('can be shared by several relays: each job once, in order', async () => {
    const outbox = openOutbox(db);
    const connections = [openApp(file), openApp(file), openApp(file)];
    const all = connections.map((connection) => start(connection, crore, { batch: 10 }));
    for (let round = 0; round < 20; round++) {
      transaction(db, () => {
        for (let i = 0; i < 25; i++) outbox.add('shared', round * 25 + i);
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all.map((one) => one.drained()));
    expect(await waiting('shared')).toEqual(Array.from({ length: 500 }, (_x, i) => i));
    expect(errors).toEqual([]);
    for (const one of relays.splice(0)) await one.close();
    for (const connection of connections) connection.close();
  });

  it('continues when the file was restored from a backup: new rows are sent', async () => {
    let outbox = openOutbox(db);
    outbox.add('mails', 'before');
    await start().drained();
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    copyFileSync(file, join(dir, 'backup.db'));
    for (let i = 0; i < 5; i++) outbox.add('mails', `lost to the backup ${i}`);
    await relays[0]!.drained();
    await relays.pop()!.close();
    db.close();
    db = openApp(join(dir, 'backup.db'));
    outbox = openOutbox(db);
    for (let i = 0; i < 9; i++) outbox.add('mails', `new ${i}`);
    await start().drained();
    const arrived = await waiting('mails');
    expect(arrived.slice(-9)).toEqual(Array.from({ length: 9 }, (_x, i) => `new ${i}`));
    expect(arrived).toHaveLength(15);
    expect(errors).toEqual([expect.stringContaining('STORE_UNCERTAIN')]);
  });

  it('continues when the store has lost its data', async () => {
    const outbox = openOutbox(db);
    outbox.add('mails', 'first');
    await start().drained();
    await relays.pop()!.close();
    outbox.add('mails', 'second');
    const empty = await open('sqlite::memory:');
    await start(db, empty).drained();
    expect(await waiting('mails', empty)).toEqual(['second']);
    expect(errors).toHaveLength(1);
    for (const one of relays.splice(0)) await one.close();
    await empty.close();
  });

  it('keeps everything while the store is down, reports it, and sends it afterwards', async () => {
    const outbox = openOutbox(db);
    outbox.add('mails', 'patient');
    const away = await open(`${inject('redisUrl')}?prefix=outbox-away`);
    await away.close();
    const one = start(db, away);
    await until('the error is reported', () => errors.length > 0);
    expect(errors[0]).toContain('CLOSED');
    await expect(one.drained()).rejects.toMatchObject({ code: 'CLOSED' });
    expect(outbox.count()).toBe(1);
    await start().drained();
    expect(await waiting('mails')).toEqual(['patient']);
  });

  it('refuses bad input by name, and writes nothing', async () => {
    const outbox = openOutbox(db);
    const circular: { self?: unknown } = {};
    circular.self = circular;
    const bad: [() => unknown, string, string][] = [
      [() => openOutbox(undefined as never), 'BAD_OPTION', 'prepare(sql)'],
      [() => openOutbox({} as never), 'BAD_OPTION', 'openOutbox'],
      [() => openOutbox(db, { maxPayloda: 1 } as never), 'BAD_OPTION', "'maxPayloda'"],
      [() => outbox.add('', 'x'), 'BAD_NAME', 'queue name'],
      [() => outbox.add('a\0b', 'x'), 'BAD_NAME', 'NUL'],
      [() => outbox.add('q', circular), 'BAD_PAYLOAD', 'circular'],
      [() => outbox.add('q', 'x'.repeat(1_100_000)), 'PAYLOAD_TOO_LARGE', '1048576'],
      [() => outbox.add('q', 'x', { delya: 1 } as never), 'BAD_OPTION', "'delya'"],
      [() => outbox.add('q', 'x', { needs: ['a'] } as never), 'BAD_OPTION', "'needs'"],
      [() => outbox.add('q', 'x', 'soon' as never), 'BAD_OPTION', 'object'],
      [() => relay(db, {} as never), 'BAD_OPTION', 'open()'],
      [() => relay(db, crore, { batch: 0 }), 'BAD_OPTION', 'batch'],
      [() => relay(db, crore, { every: 'often' }), 'BAD_DURATION', 'every'],
      [() => relay(db, crore, { onError: 1 as never }), 'BAD_OPTION', 'onError'],
      [() => transaction(db, () => openOutbox(db)), 'BAD_OPTION', 'transaction'],
      [() => transaction(db, () => relay(db, crore)), 'BAD_OPTION', 'transaction'],
    ];
    for (const [call, code, word] of bad) {
      let error: unknown;
      try {
        call();
      } catch (reason) {
        error = reason;
      }
      expect(error, word).toBeInstanceOf(CroreError);
      expect(error).toMatchObject({ code, message: expect.stringContaining(word) });
    }
    expect(outbox.count()).toBe(0);
  });
});
