// npm run bench -- [--json] [--only=substring] [--quick] [--store redis|sqlite|postgres]
// Every subject of a measurement runs once in every round, so that a busy period of the machine affects all of them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { casesOf, MEASUREMENTS } from './cases/index.mjs';
import { describeMachine } from './machine.mjs';
import { installPeers } from './peers.mjs';
import { startPostgres } from './postgres/server.mjs';
import { startRedis } from './redis/server.mjs';
import { compare, medianOf, show, tables } from './report.mjs';
import { obstacle, SUBJECTS } from './subjects/index.mjs';
import { takeTurn } from './turn.mjs';

const STORES = ['redis', 'sqlite', 'postgres'];
const SERVERS = { redis: startRedis, postgres: startPostgres };
const FULL = { rounds: 3, targetMs: 1500, samples: 300, waiting: 50_000 };
const QUICK = { rounds: 1, targetMs: 700, samples: 100, waiting: 10_000 };

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    store: { type: 'string', default: '' },
  },
});
const effort = flags.quick ? QUICK : FULL;

function say(text) {
  process.stderr.write(`bench: ${text}\n`);
}

async function presentSubjects() {
  const present = [];
  for (const entry of SUBJECTS) {
    if (flags.store && !entry.stores.includes(flags.store)) continue;
    const reason = await obstacle(entry);
    if (reason) say(`without ${entry.name}: ${reason}`);
    else present.push(entry);
  }
  return present;
}

/** The requested measurements, each on one store, with its cases and subjects. */
function plan(present) {
  const stores = STORES.filter((store) => !flags.store || store === flags.store);
  return stores.flatMap((store) => MEASUREMENTS.flatMap((measurement) => planOne(measurement, store, present)));
}

function planOne(measurement, store, present) {
  if (!measurement.stores.includes(store)) return [];
  const takesPart = (entry) =>
    entry.stores.includes(store) && entry.family === measurement.family && !entry.without?.includes(measurement.name);
  const ours = SUBJECTS.filter((entry) => entry.ours && takesPart(entry));
  const cases = casesOf(measurement, store, ours).filter((item) => item.name.includes(flags.only));
  if (cases.length === 0) return [];
  const wanted = new Set(cases.map((item) => item.subject));
  const entries = present.filter((entry) => takesPart(entry) && (!entry.ours || wanted.has(entry.name)));
  return [{ measurement, store, cases, entries }];
}

/** Runs the rounds; a subject that fails once is excluded from this measurement. */
async function measure({ measurement, store, entries }, env) {
  const taken = new Map(entries.map((entry) => [entry.name, []]));
  for (let round = 0; round < effort.rounds; round++) {
    for (const entry of entries) {
      const rounds = taken.get(entry.name);
      if (!rounds) continue;
      const task = { ...effort, name: measurement.name, store, entry, server: env.servers[store]?.address };
      const { values, error } = await takeTurn(task, env.dir);
      if (values) rounds.push(values);
      else fail(taken, entry, `${store} ${measurement.name}`, error);
    }
  }
  return new Map([...taken].map(([name, rounds]) => [name, medianOf(rounds)]));
}

function fail(taken, entry, what, error) {
  say(`${entry.name} failed at "${what}": ${error}`);
  taken.delete(entry.name);
  if (entry.ours) process.exitCode = 1;
}

function progress({ measurement, store }, medians) {
  const [figure] = measurement.figures;
  const parts = [...medians].map(([name, values]) => `${name} ${show(values[figure.key], figure.unit)}`);
  say(`${store} ${measurement.name}, ${figure.unit}: ${parts.join(', ')}`);
}

async function runAll(steps, env) {
  const lines = [];
  for (const step of steps) {
    const medians = await measure(step, env);
    progress(step, medians);
    const peers = step.entries.filter((entry) => !entry.ours).map((entry) => entry.name);
    const compared = step.cases.flatMap((item) => compare(item, medians, peers));
    if (flags.json) for (const line of compared) process.stdout.write(`${JSON.stringify(line)}\n`);
    lines.push(...compared);
  }
  return lines;
}

/** The servers that the cases need, as far as they can be started. */
async function serversFor(steps, dir, servers) {
  for (const [store, start] of Object.entries(SERVERS)) {
    if (!steps.some((step) => step.store === store)) continue;
    try {
      servers[store] = await start(dir);
    } catch (error) {
      say(`without the cases on ${store}: ${error.message}`);
      process.exitCode = 1;
    }
  }
}

/** An interrupted run leaves no server and no files behind; subjects exit when they lose their parent. */
function cleanUpOnSignal(cleanUp) {
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
    process.once(signal, () => {
      cleanUp();
      process.exit(code);
    });
  }
}

async function runSteps(steps) {
  const dir = mkdtempSync(join(tmpdir(), 'crore-bench-'));
  const servers = {};
  const removeFiles = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  cleanUpOnSignal(() => {
    for (const server of Object.values(servers)) server.kill();
    removeFiles();
  });
  try {
    await serversFor(steps, dir, servers);
    const possible = steps.filter(({ store }) => servers[store] || !SERVERS[store]);
    return await runAll(possible, { dir, servers });
  } finally {
    for (const server of Object.values(servers)) await server.stop();
    removeFiles();
  }
}

async function main() {
  if (flags.store && !STORES.includes(flags.store)) throw new Error(`--store is one of ${STORES.join(', ')}`);
  installPeers(say);
  const steps = plan(await presentSubjects());
  if (steps.length === 0) throw new Error(`no case has "${flags.only}" in its name`);
  if (flags.json) process.stdout.write(`${JSON.stringify({ machine: describeMachine() })}\n`);
  const lines = await runSteps(steps);
  if (!flags.json) process.stdout.write(`${tables(lines)}\n`);
}

try {
  await main();
} catch (error) {
  say(error.message);
  process.exitCode = 2;
}
