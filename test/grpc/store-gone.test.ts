import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { freshSqlite } from '../support/stores.js';
import { until } from '../support/wait.js';
import { startServer } from './support/server.js';

it('a server whose database file is deleted says so once, not with every sweep', async () => {
  const store = await freshSqlite();
  const server = await startServer({ url: store.url, sweep: 20 });
  for (const queue of ['a', 'b', 'c']) await server.store.push(queue, [Buffer.from('x')]);
  const errors = () => server.logs.filter(({ level }) => level === 'error');
  rmSync(store.url.slice('sqlite:'.length));
  await until('a sweep has failed', () => errors().length > 0);
  await sleep(600); // that nothing more is said shows only after more sweeps
  expect(errors()).toMatchObject([{ fields: { err: { code: 'STORE_GONE' } } }]);
  await server.close().catch(() => {});
  await store.stop();
});
