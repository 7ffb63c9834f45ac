import { renameSync, rmSync, truncateSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { openStore } from '../../dist/store/open.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { newJob } from '../support/jobs.js';
import { Program, startWorker } from '../support/processes.js';
import { ROUNDS } from '../support/rounds.js';
import { freshSqlite, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe('a SQLite file', ROUNDS, () => {
  let store: TestStore;
  let crore: Crore;
  const programs: Program[] = [];

  afterEach(async () => {
    for (const program of programs.splice(0)) await program.end('SIGKILL');
    await crore?.close();
    await store.stop();
  });
  const file = () => store.url.slice('sqlite:'.length);
  const integrity = () => {
    const db = openDatabase(file());
    const [row] = db.prepare('PRAGMA integrity_check').all();
    db.close();
    return row!.integrity_check;
  };

  it.each([
    ['deleted', (path: string) => rmSync(path)],
    ['replaced by another', (path: string) => renameSync(`${path}.other`, path)],
    [
      'moved away with its log',
      (path: string) => {
        renameSync(path, `${path}.moved`);
        renameSync(`${path}-wal`, `${path}.moved-wal`);
      },
    ],
    ['emptied', (path: string) => truncateSync(path)],
    ['robbed of its log', (path: string) => rmSync(`${path}-wal`)],
  ])('that is %s does not report anything as accepted', async (_how, remove) => {
    store = await freshSqlite();
    const other = await open(`${store.url}.other`);
    await other.queue('mails').add(1);
    await other.close();
    crore = await open(store.url, { onError: () => {} });
    const queue = crore.queue('mails');
    expect((await queue.add(1)).outcome).toBe('created');
    remove(file());
    await expect(queue.add(2)).rejects.toMatchObject({
      code: 'STORE_GONE',
      message: expect.stringContaining('crore.db'),
    });
    await expect(queue.push('task')).rejects.toMatchObject({ code: 'STORE_GONE' });
    await expect(queue.count()).rejects.toMatchObject({ code: 'STORE_GONE' });
  });

  it('serves eight processes at once: nothing is locked out, lost or duplicated', async () => {
    store = await freshSqlite();
    crore = await open(store.url, { onError: () => {} });
    const queue = crore.queue('shared');
    const producers = [0, 1, 2, 3].map(
      (i) => new Program('producer', { url: store.url, queue: 'shared', prefix: `p${i}-`, count: 150, each: 3 }),
    );
    const workers = await Promise.all(
      [0, 1, 2, 3].map(() => startWorker({ url: store.url, queue: 'shared', take: 1, options: { concurrency: 5 } })),
    );
    programs.push(...producers, ...workers);
    expect(await Promise.all(producers.map((producer) => producer.exit()))).toEqual([0, 0, 0, 0]);
    await until('all jobs to be done', async () => (await queue.count()).done === 600, { within: 40_000 });
    const handled = workers.flatMap((worker) => worker.lines).filter((line) => line.startsWith('end '));
    expect(handled).toHaveLength(600);
    expect(new Set(handled).size).toBe(600);
    expect(workers.filter((worker) => worker.lines.length > 1).length).toBeGreaterThan(1);
  });

  it('keeps what it acknowledged when its process is repeatedly killed with SIGKILL', async () => {
    store = await freshSqlite();
    const acknowledged: string[] = [];
    for (let round = 0; round < 12; round++) {
      const producer = new Program('producer', {
        url: store.url,
        queue: 'killed',
        prefix: `r${round}-`,
        count: 100_000,
        each: 7,
      });
      programs.push(producer);
      await until('some acknowledgements', () => producer.lines.length > 60);
      await producer.end('SIGKILL');
      acknowledged.push(...producer.lines);
    }
    expect(integrity()).toBe('ok');
    crore = await open(store.url);
    const queue = crore.queue('killed');
    const present = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await queue.list('ready', { limit: 1_000, cursor });
      for (const job of page.jobs) present.add(job.id);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(acknowledged.filter((id) => !present.has(id))).toEqual([]);
    expect((await queue.count()).ready).toBe(present.size);
  });

  it('fails only the invalid call of a shared commit', async () => {
    store = await freshSqlite();
    crore = await open(store.url);
    const queue = crore.queue<string>('mixed');
    const results = await Promise.allSettled([queue.add('a'), queue.add('b', { needs: ['nobody'] }), queue.add('c')]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await queue.count()).ready).toBe(2);
  });

  it('keeps what other calls of the same commit did before the invalid one', async () => {
    store = await freshSqlite();
    crore = await open(store.url);
    const direct = await openStore(store.url, { timeout: 5_000 });
    const needs = [{ queue: 'mixed', id: 'nobody', on: 'success' as const }];
    const results = await Promise.allSettled([
      direct.add('mixed', [newJob('a')]),
      direct.add('mixed', [newJob('b', { spec: { needs } })]),
      direct.add('mixed', [newJob('c')]),
    ]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const jobs = await direct.get('mixed', ['a', 'b', 'c']);
    await direct.close();
    expect(jobs.map((job) => job?.state)).toEqual(['ready', undefined, 'ready']);
  });

  it('retries while another process keeps it locked, and finally reports that', async () => {
    store = await freshSqlite();
    crore = await open(store.url, { timeout: 400 });
    const queue = crore.queue<string>('locked');
    await queue.add('before');
    const other = openDatabase(file());
    other.exec('BEGIN IMMEDIATE');
    await expect(queue.add('refused')).rejects.toMatchObject({ code: 'STORE_BUSY' });
    const patient = queue.add('patient');
    other.exec('COMMIT');
    other.close();
    expect((await patient).outcome).toBe('created');
    expect((await queue.count()).ready).toBe(2);
  });

  it('counts exactly what it contains', async () => {
    store = await freshSqlite();
    crore = await open(store.url, { onError: () => {} });
    const queue = crore.queue<number>('counted');
    await queue.addMany(
      Array.from({ length: 50 }, (_x, i) => ({
        payload: i,
        priority: i % 3,
        delay: i % 5 === 0 ? '1h' : 0,
        attempts: 1,
      })),
    );
    await queue.push(['a', 'b']);
    const worker = queue.work(async (job) => {
      if (typeof job.payload === 'number' && job.payload % 4 === 0) throw new Error('no');
    });
    await until('all tasks to run', async () => (await queue.count()).ready + (await queue.count()).active === 0);
    await worker.close();
    const db = openDatabase(file());
    const rows = db.prepare('SELECT state, count(*) AS n FROM jobs GROUP BY state ORDER BY state').all();
    db.close();
    const counts = await queue.count();
    expect(rows.map((row) => [row.state, row.n])).toEqual([
      [1, counts.scheduled],
      [4, counts.done],
      [5, counts.dead],
    ]);
  });

  it('ends its heartbeat thread cleanly, at any point of its life', async () => {
    store = await freshSqlite();
    const program = new Program('brief', { url: store.url, times: 40 });
    programs.push(program);
    expect(await program.exit()).toBe(0);
  });
});
