import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Crore } from '../../dist/crore.js';
import { CroreError } from '../../dist/index.js';
import { openOutbox, relay } from '../../dist/outbox/index.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { seededRandom } from '../../dist/testing/clock.js';
import { openApp, transaction } from '../support/sqlite.js';
import { until } from '../support/wait.js';

const QUEUES = ['a', 'b'];
const ROWS = 40;

type Arrived = Record<string, unknown[]>;

/** The store with random failures before or after a call. Records what was added, so ids cannot mask duplicates. */
function flaky(store: Store, random: () => number, arrived: Arrived): Store {
  const fail = (when: string) => {
    if (random() < 0.15) throw new CroreError('STORE_UNCERTAIN', `lost ${when} the call`);
  };
  const dawdle = async () => {
    for (let i = Math.floor(random() * 5); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
  };
  const unreliable = async <T>(call: () => Promise<T>): Promise<T> => {
    await dawdle();
    fail('before');
    const answer = await call();
    await dawdle();
    fail('after');
    return answer;
  };
  const sources: Store['sources'] = {
    position: (queue, source) => unreliable(() => store.sources.position(queue, source)),
    add: (queue, jobs, step) =>
      unreliable(async () => {
        const answer = await store.sources.add(queue, jobs, step);
        if (answer !== 'stale') arrived[queue]!.push(...jobs.map((job) => JSON.parse(job.payload as string)));
        return answer;
      }),
  };
  return new Proxy(store, {
    get(target, key) {
      if (key === 'sources') return sources;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Relays that fail, race and lose their connections at any point, in an order determined by the seed. */
async function history(seed: number): Promise<Arrived> {
  const random = seededRandom(seed);
  const arrived: Arrived = { a: [], b: [] };
  const dir = mkdtempSync(join(tmpdir(), 'crore-interleaved-'));
  const store = await openStore('sqlite::memory:', { timeout: 10_000 });
  const onError = () => {};
  const crore = new Crore(flaky(store, random, arrived), { timeout: 10_000, maxPayload: 1_000, onError, random });
  const db = openApp(join(dir, 'app.db'));
  const outbox = openOutbox(db);
  let written = 0;
  const write = (count: number) =>
    transaction(db, () => {
      for (let i = 0; i < count && written < ROWS; i++) for (const queue of QUEUES) outbox.add(queue, written++ >> 1);
    });
  const start = () => {
    const connection = openApp(join(dir, 'app.db'));
    const one = relay(connection, crore, { batch: 1 + Math.floor(random() * 4), every: 5, onError });
    // Whatever it still tries to do meets a closed connection, as if it had been killed.
    return { one, kill: () => connection.close() };
  };
  const running = [start(), start()];
  for (let round = 0; round < 8; round++) {
    write(Math.ceil(random() * 6));
    for (let i = Math.floor(random() * 40); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
    const [victim] = running.splice(Math.floor(random() * running.length), 1, start());
    victim!.kill();
    await victim!.one.close();
  }
  write(ROWS);
  await until('everything is sent', () => outbox.count() === 0, { within: 50_000 });
  for (const { one } of running) await one.close();
  await crore.close();
  for (const { kill } of running) kill();
  db.close();
  rmSync(dir, { recursive: true });
  return arrived;
}

describe('relays in any interleaving of events', () => {
  const seeds = Array.from({ length: 20 }, (_x, i) => i + 1);

  it('deliver each row once and in order', async () => {
    const all = Array.from({ length: ROWS / 2 }, (_x, i) => i);
    const histories = await Promise.all(seeds.map(history));
    for (const [i, arrived] of histories.entries()) expect(arrived, `seed ${seeds[i]}`).toEqual({ a: all, b: all });
  });
});
