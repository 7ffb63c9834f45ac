// The job server compared with grpc-js, with a bare server in Go and with the library: `node bench/grpc.mjs [--quick] [--go]`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goProgram } from './grpc/go-program.mjs';
import { inProcess, throughServer } from './grpc/library.mjs';
import { downstream, upstream } from './grpc/protocol.mjs';
import { PLACES, throughStores } from './grpc/real-clients.mjs';
import { median } from './grpc/server-process.mjs';
import { unary } from './grpc/unary.mjs';

const quick = process.argv.includes('--quick');
const onlyGo = process.argv.includes('--go');
const ROUNDS = quick ? 1 : 3;
const MESSAGES = quick ? 100_000 : 300_000;
/** Both servers handle this many streams, 300,000 messages, before one is measured: by then their code is compiled. */
const WARM_UPS = quick ? 3 : 1;
const FRESH_MESSAGES = 200_000;
const CALLS = quick ? 1_000 : 3_000;
const JOBS = quick ? 20_000 : 100_000;
const GO_JOBS = quick ? 50_000 : 200_000;
const KINDS = ['grpc-js', 'protocol'];

const say = (text) => process.stdout.write(`${text}\n`);
const figures = { library: [], server: [], rss: 0 };
const push = (name, kind, value) => {
  figures[name] ??= {};
  figures[name][kind] ??= [];
  figures[name][kind].push(value);
};

async function beside(kind) {
  push('up', kind, await upstream(kind, MESSAGES, WARM_UPS));
  push('down', kind, await downstream(kind, MESSAGES, WARM_UPS));
  push('freshUp', kind, await upstream(kind, FRESH_MESSAGES, 0));
  push('freshDown', kind, await downstream(kind, FRESH_MESSAGES, 0));
  const { latency, cpu } = await unary(kind, CALLS);
  push('latency', kind, latency);
  push('unary', kind, cpu);
}

async function onSqlite() {
  const dir = mkdtempSync(join(tmpdir(), 'crore-grpc-'));
  figures.library.push(await inProcess(`sqlite:${join(dir, 'library.db')}`, JOBS));
  const { rate, rss } = await throughServer(`sqlite:${join(dir, 'server.db')}`, JOBS);
  figures.server.push(rate);
  figures.rss = Math.max(figures.rss, rss);
  rmSync(dir, { recursive: true, force: true });
}

function showBeside() {
  const titles = {
    up: 'server CPU per Lakh message, client to server',
    down: 'server CPU per Lakh message, server to client',
    freshUp: `the same, client to server, the first ${FRESH_MESSAGES} of a fresh server`,
    freshDown: `the same, server to client, the first ${FRESH_MESSAGES} of a fresh server`,
    latency: 'latency of a single call (Add with one job)',
    unary: 'server CPU of a single call',
  };
  for (const [name, title] of Object.entries(titles)) {
    const [theirs, own] = KINDS.map((kind) => median(figures[name][kind]));
    say(`${title}: ${own.toFixed(2)} µs, bare grpc-js ${theirs.toFixed(2)} µs, ratio ${(theirs / own).toFixed(2)}x`);
  }
  const [library, server] = [median(figures.library), median(figures.server)];
  say(
    `jobs a second end to end, SQLite FULL: server ${Math.round(server)}, library in process ${Math.round(library)}, share ${((100 * server) / library).toFixed(0)} %`,
  );
  say(`server memory at its largest: ${Math.round(figures.rss / 1_048_576)} MB`);
}

async function realClients() {
  const { program, missing } = await goProgram();
  if (!program) {
    say(`without clients in Go: ${missing}`);
    return;
  }
  const rounds = [];
  const skipped = (name, error) => say(`without ${name}: ${error.message.split('\n')[0]}`);
  for (let round = 0; round < ROUNDS; round++) rounds.push(await throughStores(program, GO_JOBS, skipped));
  showRounds(rounds);
}

function showRounds(rounds) {
  const of = (name, key) => median(rounds.flatMap((round) => round[name]?.[key] ?? []));
  const [bare] = Object.keys(PLACES);
  say(`\n${GO_JOBS} jobs from a producer in Go through the server to a consumer in Go`);
  say('| server | jobs a second | of the bare server | fresh server | server CPU per job |');
  say('| --- | --- | --- | --- | --- |');
  for (const name of Object.keys(PLACES)) {
    const rate = of(name, 'rate');
    if (rate === undefined) continue;
    const cost = `${of(name, 'cpu').toFixed(1)} µs`;
    const share = (rate / of(bare, 'rate')).toFixed(2);
    say(`| ${name} | ${Math.round(rate)} | ${share} | ${Math.round(of(name, 'fresh'))} | ${cost} |`);
  }
}

if (!onlyGo) {
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of KINDS) await beside(kind);
    await onSqlite();
  }
  showBeside();
}
await realClients();
