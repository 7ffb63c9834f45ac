import { inject } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import { testReports } from './reports.js';

const timeout = 10_000;

testReports({
  name: 'sqlite',
  open: async (clock) => {
    const store = await openStore('sqlite::memory:', { timeout, clock });
    return { store, close: () => store.close() };
  },
});

testReports({
  name: 'redis',
  open: async (clock) => {
    const store = await openStore(`${inject('redisUrl')}?prefix=reports`, { timeout, clock });
    return { store, close: () => store.close() };
  },
});
