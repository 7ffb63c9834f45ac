import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import { migrateSchema } from '../../dist/store/schema.js';
import { createRole } from '../support/postgres.js';
import { startCluster } from '../support/redis.js';
import { type StoreUnderTest, testStore } from './contract.js';

const timeout = 10_000;

const STORES: StoreUnderTest[] = [
  {
    name: 'sqlite memory',
    open: async (clock) => {
      const store = await openStore('sqlite::memory:', { timeout, clock });
      return { store, close: () => store.close() };
    },
  },
  {
    name: 'sqlite file',
    open: async (clock) => {
      const dir = mkdtempSync(join(tmpdir(), 'crore-sqlite-'));
      const store = await openStore(`sqlite:${join(dir, 'crore.db')}`, { timeout, clock });
      return {
        store,
        close: async () => {
          await store.close();
          rmSync(dir, { recursive: true });
        },
      };
    },
  },
  {
    name: 'redis',
    open: async (clock) => {
      const store = await openStore(`${inject('redisUrl')}?prefix=conformance`, { timeout, clock });
      return { store, close: () => store.close() };
    },
  },
  {
    name: 'postgres, as a role that may not create anything',
    open: async (clock) => {
      const url = `${inject('postgresUrl')}?schema=conformance`;
      await createRole(inject('postgresUrl'), 'conformer');
      await migrateSchema(url, { timeout, role: 'conformer' });
      const store = await openStore(url.replace('crore@', 'conformer@'), { timeout, clock });
      return { store, close: () => store.close() };
    },
  },
  {
    name: 'redis cluster',
    open: async (clock) => {
      const cluster = await startCluster();
      const store = await openStore(cluster.url, { timeout, clock }).catch(async (error) => {
        await cluster.stop();
        throw error;
      });
      return {
        store,
        close: async () => {
          await store.close();
          await cluster.stop();
        },
      };
    },
  },
];

for (const store of STORES) testStore(store);
