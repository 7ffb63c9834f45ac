import { afterEach, inject } from 'vitest';
import { Worqr, type WorqrOptions } from '../../dist/worqr/index.js';
import { freshPostgres, freshSqlite } from '../support/stores.js';

/** One received event: `type message`. */
export type Heard = string[];

let places = 0;

/** Instances that are closed after each test, on stores of their own. */
export function workshop() {
  const cleanups: (() => Promise<unknown> | unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const place = {
    redis: async () => `${inject('redisUrl')}?prefix=worqr-test-${process.pid}-${++places}`,
    sqlite: async () => {
      const { url, stop } = await freshSqlite();
      cleanups.push(stop);
      return url;
    },
    postgres: async () => {
      const { url, stop } = await freshPostgres();
      cleanups.push(stop);
      return url;
    },
  };
  const make = (url: ConstructorParameters<typeof Worqr>[0], options: WorqrOptions = {}): Worqr => {
    const worqr = new Worqr(url, options);
    worqr.on('error', () => {});
    cleanups.push(() => worqr.close());
    return worqr;
  };
  /** A started worker on a queue, and the events it receives. */
  const worker = async (url: string, queue: string, options: WorqrOptions = {}) => {
    const worqr = make(url, options);
    const heard: Heard = [];
    worqr.on(queue, (type: string, message: string) => heard.push(`${type} ${message}`));
    await worqr.startWorker();
    await worqr.startWork(queue);
    return { worqr, heard };
  };
  return { place, make, worker, cleanups };
}

export const STORES = ['redis', 'sqlite', 'postgres'] as const;

/** Sweeps often, and is not declared dead on a busy machine. */
export const LIVELY: WorqrOptions = { workerTimeout: 20, workerHeartbeatInterval: 150, workerCleanupInterval: 200 };
/** A lease short enough for a test to wait until it expires. */
export const SHORT: WorqrOptions = { workerTimeout: 1, workerHeartbeatInterval: 200, workerCleanupInterval: 200 };
