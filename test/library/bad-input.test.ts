import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Crore, CroreError, open } from '../../dist/index.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';

describe('bad input is refused immediately, named, and changes nothing', () => {
  let crore: Crore;
  const dir = mkdtempSync(join(tmpdir(), 'crore-bad-'));

  beforeAll(async () => {
    crore = await open('sqlite::memory:');
  });
  afterAll(async () => {
    await crore.close();
    rmSync(dir, { recursive: true });
  });

  const circular: { self?: unknown } = {};
  circular.self = circular;

  const adds: [string, unknown, object | undefined, string, string][] = [
    ['an unknown option', 'x', { delya: 5 }, 'BAD_OPTION', "'delya'"],
    ['a bad duration', 'x', { delay: '5 parsecs' }, 'BAD_DURATION', "'5 parsecs'"],
    ['a negative duration', 'x', { delay: -1 }, 'BAD_DURATION', '-1'],
    ['both delay and at', 'x', { delay: 1, at: new Date() }, 'BAD_OPTION', "'delay' or 'at'"],
    ['an invalid date', 'x', { at: new Date('nonsense') }, 'BAD_OPTION', 'at'],
    ['an empty id', 'x', { id: '' }, 'BAD_NAME', 'job id'],
    ['an id with NUL', 'x', { id: 'a\0b' }, 'BAD_NAME', 'NUL'],
    ['an id that is no text', 'x', { id: 5 }, 'BAD_NAME', '5'],
    ['an id that is not Unicode', 'x', { id: 'a\ud800' }, 'BAD_NAME', 'Unicode'],
    ['an id without end', 'x', { id: 'a'.repeat(1_000) }, 'BAD_NAME', 'longer'],
    ['a fractional priority', 'x', { priority: 1.5 }, 'BAD_OPTION', 'priority'],
    ['no attempts', 'x', { attempts: 0 }, 'BAD_OPTION', 'attempts'],
    ['an unknown backoff', 'x', { backoff: { kind: 'magic' } }, 'BAD_OPTION', "'magic'"],
    ['a window without ttl', 'x', { unique: { key: 'k', scope: 'window' } }, 'BAD_OPTION', 'ttl'],
    ['headers that are no text', 'x', { headers: { a: 1 } }, 'BAD_OPTION', "'a'"],
    ['needs that are no list', 'x', { needs: 'a' }, 'BAD_OPTION', 'needs'],
    ['an unknown upstream', 'x', { needs: ['nope'] }, 'UNKNOWN_UPSTREAM', "'nope'"],
    ['circular JSON', circular, undefined, 'BAD_PAYLOAD', 'circular'],
    ['a BigInt', { n: 1n }, undefined, 'BAD_PAYLOAD', 'BigInt'],
    ['a function', () => {}, undefined, 'BAD_PAYLOAD', 'function'],
    ['a payload over the limit', 'x'.repeat(1_100_000), undefined, 'PAYLOAD_TOO_LARGE', '1048576'],
  ];
  it.each(adds)('add: %s', async (_what, payload, options, code, word) => {
    const queue = crore.queue('bad');
    const error = await queue.add(payload, options as never).then(
      () => undefined,
      (reason: CroreError) => reason,
    );
    expect(error).toBeInstanceOf(CroreError);
    expect(error!.code).toBe(code);
    expect(error!.message).toContain(word);
    expect(Object.values(await queue.count()).every((n) => n === 0)).toBe(true);
  });

  it('addMany: one bad item refuses all, naming its index', async () => {
    const queue = crore.queue('bad-many');
    const adding = queue.addMany([{ payload: 1 }, { payload: 2, id: '' }]);
    await expect(adding).rejects.toMatchObject({ code: 'BAD_NAME', message: expect.stringContaining('item 1') });
    expect((await queue.count()).ready).toBe(0);
  });

  it.each([
    ['', 'must not be empty'],
    ['a\0b', 'NUL'],
    [undefined, 'must be a string'],
    ['x'.repeat(600), 'longer'],
  ])('queue name %j', (name, word) => {
    expect(() => crore.queue(name as string)).toThrowError(
      expect.objectContaining({ code: 'BAD_NAME', message: expect.stringContaining(word) }),
    );
  });

  it.each([
    [{ concurrency: 0 }, 'concurrency'],
    [{ conucrrency: 5 }, "'conucrrency'"],
    [{ lease: '1s', heartbeat: '900ms' }, 'heartbeat'],
    [{ lease: 5 }, 'lease'],
    [{ lease: '10s', sweep: '6s' }, 'sweep'],
    [{ grace: '30d' }, 'grace'],
    [{ backoff: 5 }, 'backoff'],
    [{ tasks: 'xml' }, "'xml'"],
  ])('work options %j', (options, word) => {
    expect(() => crore.queue('q').work(async () => {}, options as never)).toThrowError(
      expect.objectContaining({ code: 'BAD_OPTION', message: expect.stringContaining(word) }),
    );
    expect(() => crore.queue('q').work('handler' as never)).toThrowError(
      expect.objectContaining({ code: 'BAD_OPTION' }),
    );
  });

  it('raw tasks that are neither text nor bytes', async () => {
    await expect(crore.queue('q').push(5 as never)).rejects.toMatchObject({ code: 'BAD_PAYLOAD' });
    await expect(crore.queue('q').push(['a', {}] as never)).rejects.toMatchObject({ code: 'BAD_PAYLOAD' });
    expect((await crore.queue('q').count()).ready).toBe(0);
  });

  it.each([
    ['mysql://localhost', 'mysql://localhost'],
    ['sqlite:', 'needs a file'],
    ['redis://localhost:99999', "'localhost:99999'"],
    ['redis://a,b', 'several hosts'],
    ['redis://localhost/x', "'x'"],
    ['redis://localhost?prefxi=a', "'prefxi'"],
    ['redis://localhost?prefix={a}', 'prefix'],
  ])('store URL %s', async (url, word) => {
    await expect(open(url)).rejects.toMatchObject({ code: 'BAD_URL', message: expect.stringContaining(word) });
  });

  it('an unreachable Redis, without revealing the password', async () => {
    const error: CroreError = await open('redis://me:s3cret@127.0.0.1:1', { timeout: 500 }).then(
      () => expect.fail('opened'),
      (reason) => reason,
    );
    expect(error.code).toBe('STORE_UNREACHABLE');
    expect(error.message).toContain('127.0.0.1:1');
    expect(error.message).not.toContain('s3cret');
  });

  it('a Redis store with a newer format', async () => {
    const { Redis } = await import('ioredis');
    const redis = new Redis(inject('redisUrl'), { protocol: 2 });
    await redis.set('newer:format', '999');
    redis.disconnect();
    await expect(open(`${inject('redisUrl')}?prefix=newer`)).rejects.toMatchObject({ code: 'STORE_NEWER' });
  });

  it('a database file with a newer format, from another application, or that is not a database', async () => {
    const newer = join(dir, 'newer.db');
    const first = await open(`sqlite:${newer}`);
    await first.close();
    const db = openDatabase(newer);
    db.exec('PRAGMA user_version = 999');
    db.close();
    await expect(open(`sqlite:${newer}`)).rejects.toMatchObject({
      code: 'STORE_NEWER',
      message: expect.stringContaining('999'),
    });

    const foreign = join(dir, 'foreign.db');
    const other = openDatabase(foreign);
    other.exec('CREATE TABLE theirs (a)');
    other.close();
    await expect(open(`sqlite:${foreign}`)).rejects.toMatchObject({
      code: 'STORE_CORRUPT',
      message: expect.stringContaining('not a Crore store'),
    });

    const text = join(dir, 'text.db');
    writeFileSync(text, 'this is not a database, only a file with a lot of text in it\n'.repeat(50));
    await expect(open(`sqlite:${text}`)).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
    await expect(open(`sqlite:${join(dir, 'no', 'such', 'folder.db')}`)).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
    });
  });

  it.skipIf(process.getuid?.() === 0)('a database file that is not writable (root can always write)', async () => {
    const file = join(dir, 'readonly.db');
    await (await open(`sqlite:${file}`)).close();
    chmodSync(file, 0o400);
    await expect(open(`sqlite:${file}`)).rejects.toMatchObject({ code: 'STORE_READONLY' });
  });

  it('a location where no file can be created', async () => {
    await expect(open('sqlite:/sys/crore.db')).rejects.toMatchObject({ code: 'STORE_READONLY' });
  });

  it('a database file is accessible only to its owner', async () => {
    const file = join(dir, 'private.db');
    const mine = await open(`sqlite:${file}`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o600);
    await mine.close();
  });

  it('any call after close, with CLOSED', async () => {
    const gone = await open('sqlite::memory:');
    const queue = gone.queue('q');
    const waiting = (await queue.add('x')).finished();
    waiting.catch(() => {});
    await Promise.all([gone.close(), gone.close()]);
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(queue.add('y')).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(queue.handle('x').finished()).rejects.toMatchObject({ code: 'CLOSED' });
    expect(() => queue.work(async () => {})).toThrowError(expect.objectContaining({ code: 'CLOSED' }));
  });
});
