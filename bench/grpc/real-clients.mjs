// Jobs a second from a producer in Go through the server to a consumer in Go, beside a bare server in Go that keeps nothing.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { serverMicroseconds, startPostgres } from '../postgres/server.mjs';
import { startRedis } from '../redis/server.mjs';
import { startServer } from './server-process.mjs';

const run = promisify(execFile);
const BOUND = 180_000;

/** `rate` of jobs a second, the first time and the second time, and the CPU of the server per job then. */
async function measure(program, server, jobs) {
  const once = async () => {
    const before = await server.ask();
    const { stdout } = await run(program, ['through', `127.0.0.1:${server.port}`, String(jobs)], { timeout: BOUND });
    const after = await server.ask();
    return { rate: JSON.parse(stdout).rate, cpu: (after.cpu - before.cpu) / jobs };
  };
  const { rate: fresh } = await once();
  return { fresh, ...(await once()) };
}

async function bareGo(program) {
  const child = spawn(program, ['serve'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    port: Number(line),
    ask: async () => ({ cpu: serverMicroseconds(child.pid) }),
    stop: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** The stores of the comparison; one whose server is not installed throws when it is opened. */
export const PLACES = {
  'bare server in Go': ({ program }) => bareGo(program),
  'a store that keeps nothing': () => startServer('passing'),
  'in memory': () => startServer('store', 'sqlite::memory:'),
  'SQLite file': ({ dir }) => startServer('store', `sqlite:${join(dir, 'crore.db')}`),
  Redis: ({ redis }) => startServer('store', redis),
  Postgres: ({ postgres }) => startServer('store', postgres),
};

/** One round: every place once, on fresh data. */
export async function throughStores(program, jobs, skipped) {
  const dir = mkdtempSync(join(tmpdir(), 'crore-go-'));
  const figures = {};
  for (const [name, start] of Object.entries(PLACES)) {
    const stops = [];
    try {
      const urls = await urlsOf(name, dir, stops);
      const server = await start({ program, dir, ...urls });
      stops.push(server.stop);
      figures[name] = await measure(program, server, jobs);
    } catch (error) {
      skipped(name, error);
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  }
  rmSync(dir, { recursive: true, force: true });
  return figures;
}

async function urlsOf(name, dir, stops) {
  if (name === 'Redis') {
    const { address, stop } = await startRedis(dir);
    stops.push(stop);
    return { redis: address.url };
  }
  if (name !== 'Postgres') return {};
  const { address, stop } = await startPostgres(dir);
  stops.push(stop);
  return { postgres: `postgres://${address.user}@${address.host}:${address.port}/postgres` };
}
