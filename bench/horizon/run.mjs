// npm run bench -- horizon [--json] [--quick] [--seconds=180]: jobs at a steady rate while a transaction elsewhere is open, so that nothing can be
// vacuumed. How many buffers does a claim read, and how long do jobs wait, as time goes by?
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine } from '../machine.mjs';
import { installPeers } from '../peers.mjs';
import { placeOf } from '../postgres/control.mjs';
import { startPostgres } from '../postgres/server.mjs';
import { obstacle, SUBJECTS } from '../subjects/index.mjs';
import { connectPostgres } from '../subjects/root.mjs';
import { observe } from './observe.mjs';

const FULL = { seconds: 180, samples: 30, behind: 500_000 };
const QUICK = { seconds: 10, samples: 5, behind: 20_000 };
const RATE = 480;
const SETTINGS = { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'top' };

/** `claim` finds the statement that claims jobs; only ours goes on behind a large number of dead rows. */
const CLAIMS = {
  'crore add, forgotten': { claim: '%.claim_f%', goesOn: true },
  'graphile-worker': { claim: '%skip locked%' },
  'pg-boss': { claim: '%skip locked%' },
};

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string' },
  },
});
const effort = flags.quick ? QUICK : FULL;
if (flags.seconds) effort.seconds = Math.max(1, Number(flags.seconds) || effort.seconds);

function say(text) {
  process.stderr.write(`bench: ${text}\n`);
}

function print(line) {
  if (flags.json) process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function runSubject(entry, server) {
  const admin = connectPostgres({ ...server.address, database: 'postgres' });
  const database = `horizon_${SUBJECTS.indexOf(entry)}`;
  await admin.unsafe(`create database ${database}`);
  const place = placeOf(server.address, database);
  const samples = await observe({ entry, place, admin, rate: RATE, ...CLAIMS[entry.name], ...effort }, (sample) =>
    print({ horizon: entry.name, ...sample }),
  );
  await admin.unsafe(`drop database ${database} with (force)`);
  await admin.end({ timeout: 1 });
  const [first, last] = [samples[0], samples.at(-1)];
  const change = (key) => `${first[key]} -> ${last[key]}`;
  say(`${entry.name}: buffers per claim ${change('buffers')}, pickup p50 ${change('p50')} ms, ${last.jobs} jobs`);
}

async function main() {
  installPeers(say);
  const dir = mkdtempSync(join(tmpdir(), 'crore-bench-'));
  let server;
  try {
    server = await startPostgres(dir, SETTINGS);
    print({ machine: describeMachine() });
    for (const entry of SUBJECTS.filter(({ name, stores }) => CLAIMS[name] && stores.includes('postgres'))) {
      const reason = await obstacle(entry);
      if (reason) say(`without ${entry.name}: ${reason}`);
      else await runSubject(entry, server);
    }
  } finally {
    await server?.stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

try {
  await main();
  process.exit(0);
} catch (error) {
  say(error.message);
  process.exit(2);
}
