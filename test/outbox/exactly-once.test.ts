import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Crore, type CroreError, open } from '../../dist/index.js';
import { type Outbox, openOutbox, relay } from '../../dist/outbox/index.js';
import { Program } from '../support/processes.js';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { ROUNDS } from '../support/rounds.js';
import { type AppDatabase, openApp, transaction } from '../support/sqlite.js';
import { freshRedis, STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

/** Jobs that are deleted as soon as they are done: their ids cannot prevent duplicates. */
const FORGOTTEN = { keep: { count: 0 } };

describe('a relay sends each job exactly once, in order', ROUNDS, () => {
  let dir: string;
  let file: string;
  let db: AppDatabase;
  let outbox: Outbox;
  let store: TestStore;
  let crore: Crore | undefined;
  const programs: Program[] = [];
  let written = 0;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-once-'));
    file = join(dir, 'app.db');
    db = openApp(file);
    outbox = openOutbox(db);
    written = 0;
  });
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.end('SIGKILL');
    await crore?.close();
    crore = undefined;
    await store.stop();
    db.close();
    rmSync(dir, { recursive: true });
  });

  const write = (count: number) =>
    transaction(db, () => {
      for (let i = 0; i < count; i++) outbox.add('once', written++, FORGOTTEN);
    });
  const startRelay = async (url: string, batch: number) => {
    const program = new Program('relay', { file, url, batch });
    programs.push(program);
    await program.line('ready');
    return program;
  };
  const all = () => Array.from({ length: written }, (_x, i) => i);
  /** Processes the queue while jobs arrive; returns what it has seen, in order. */
  const consume = async (url: string) => {
    crore = await open(url, { onError: () => {} });
    const seen: number[] = [];
    const worker = crore.queue<number>('once').work(async ({ payload }) => void seen.push(payload));
    await worker.ready();
    return seen;
  };

  it.each(STORES)('to %s, although it is killed with -9 at random moments', async (_name, fresh) => {
    store = await fresh();
    const seen = await consume(store.url);
    for (let round = 0; round < 12; round++) {
      write(400);
      const before = outbox.count();
      const program = await startRelay(store.url, 3);
      await until('the relay has started sending', () => outbox.count() < before);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 40)); // the moment of the kill is random
      await program.end('SIGKILL');
    }
    await startRelay(store.url, 500);
    await until('everything is sent', () => outbox.count() === 0);
    await until('everything is seen', () => seen.length >= written);
    expect(seen).toEqual(all());
  });

  it('although several relays in several processes race and die', async () => {
    store = await freshRedis();
    const seen = await consume(store.url);
    for (let round = 0; round < 3; round++) {
      write(400);
      const racers = await Promise.all([startRelay(store.url, 5), startRelay(store.url, 8), startRelay(store.url, 11)]);
      await until('the relays have started sending', () => outbox.count() < 400);
      for (const racer of racers.slice(1)) await racer.end('SIGKILL');
      write(100);
      await until('everything is sent', () => outbox.count() === 0);
      await racers[0]!.end('SIGKILL');
    }
    await until('everything is seen', () => seen.length >= written);
    expect(seen).toEqual(all());
  });

  it('although the store is full for a while', async () => {
    const redis = await RedisServer.start();
    store = { name: 'redis', url: redis.url, stop: () => redis.stop() };
    write(300);
    crore = await open(store.url, { onError: () => {} });
    await redis.client.config('SET', 'maxmemory', '1');
    const errors: string[] = [];
    const connection = openApp(file);
    const one = relay(connection, crore, {
      batch: 50,
      onError: (error) => void errors.push((error as CroreError).code),
    });
    await until('the error is reported', () => errors.length > 0);
    expect(errors[0]).toBe('STORE_FULL');
    expect(outbox.count()).toBe(300);
    await redis.client.config('SET', 'maxmemory', '0');
    await one.drained();
    await one.close();
    connection.close();
    const { jobs } = await crore.queue('once').list('ready', { limit: 1_000 });
    expect(jobs.map((job) => job.payload)).toEqual(all());
  });

  it('although replies are lost and connections are cut', async () => {
    const redis = await RedisServer.start();
    store = { name: 'redis', url: redis.url, stop: () => redis.stop() };
    const seen = await consume(store.url);
    const line = new Line(redis.port);
    await line.listen();
    let answers = 0;
    const target = await open(`redis://localhost:${line.port}`, { onError: () => {}, timeout: 1_000 });
    // Every seventh reply is lost, although its command was executed.
    line.onReply = () => {
      answers += 1;
      if (answers % 7 !== 0) return true;
      line.cut();
      return false;
    };
    write(600);
    const one = relay(openApp(file), target, { batch: 10, onError: () => {} });
    await one.drained({ timeout: '50s' });
    expect(answers).toBeGreaterThan(60);
    line.onReply = () => true;
    await one.close();
    await target.close();
    line.close();
    await until('everything is seen', () => seen.length >= written);
    expect(seen).toEqual(all());
  });
});
