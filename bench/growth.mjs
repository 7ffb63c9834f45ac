// node bench/growth.mjs [--quick] [--huge] [--json] [--only=AXIS] [--store redis|sqlite|postgres]: what a job costs from `add` to its end as one thing grows, in µs of CPU
// time of this process and of the store's server together. CPU time is what a busy machine disturbs least.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cost } from './growth/cost.mjs';
import { describeMachine } from './machine.mjs';
import { postgresControl } from './postgres/control.mjs';
import { startPostgres } from './postgres/server.mjs';
import { redisControl } from './redis/control.mjs';
import { startRedis } from './redis/server.mjs';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    /** Ten million waiting jobs, too: 3 GB in Redis or on disk. */
    huge: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    store: { type: 'string', default: '' },
  },
});

/** What grows, and how far. */
const AXES = {
  backlog: flags.quick ? [1_000, 20_000] : [1_000, 100_000, 1_000_000, ...(flags.huge ? [10_000_000] : [])],
  queues: flags.quick ? [1, 100] : [1, 100, 10_000],
  workers: flags.quick ? [1, 16] : [1, 4, 16, 64],
  bytes: flags.quick ? [10, 10_000] : [10, 1_000, 100_000, 1_000_000],
  groups: flags.quick ? [1, 1_000] : [1, 100, 10_000, 100_000],
  kept: flags.quick ? [0, 1_000] : [0, 1_000, 100_000],
};
/** How to start the server of each store, and what to ask it. */
const STORES = {
  redis: { start: startRedis, control: redisControl },
  sqlite: { start: async () => undefined, control: () => undefined },
  postgres: { start: startPostgres, control: postgresControl },
};

function print(store, axis, at, { cpu, ms }) {
  const line = { growth: axis, store, at, cpu: Number(cpu.toPrecision(4)), ms: Math.round(ms) };
  const text = `${store.padEnd(7)} ${axis.padEnd(8)} ${String(at).padStart(9)}   ${cpu.toFixed(1).padStart(9)} µs a job`;
  process.stdout.write(`${flags.json ? JSON.stringify(line) : text}\n`);
}

/** One point, on fresh data. */
async function measure(store, axis, at, server) {
  const dir = mkdtempSync(join(tmpdir(), 'crore-growth-'));
  const control = server && STORES[store].control(server.address);
  try {
    const url = control ? (await control.freshPlace(`${axis}_${at}`)).url : `sqlite:${join(dir, 'growth.db')}`;
    const busy = control ? () => control.busyMicroseconds() : async () => 0;
    print(store, axis, at, await cost(url, { [axis]: at }, busy, flags.quick));
  } finally {
    await control?.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function measureAll(store, server) {
  for (const [axis, points] of Object.entries(AXES)) {
    if (!axis.includes(flags.only)) continue;
    for (const at of points) await measure(store, axis, at, server);
  }
}

const dir = mkdtempSync(join(tmpdir(), 'crore-growth-'));
try {
  if (flags.json) process.stdout.write(`${JSON.stringify({ machine: describeMachine() })}\n`);
  for (const store of Object.keys(STORES).filter((one) => flags.store === '' || one === flags.store)) {
    const server = await STORES[store].start(dir);
    try {
      await measureAll(store, server);
    } finally {
      await server?.stop();
    }
  }
} finally {
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}
process.exit(0);
