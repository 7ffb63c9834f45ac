// npm run bench -- [SUITE] [options of the suite]; the suite is "stores" unless another is named.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** In the order of --help. */
const SUITES = {
  stores: ['run.mjs', 'queues on Redis, SQLite and Postgres beside their peers and ceilings: the default'],
  horizon: ['horizon/run.mjs', 'queues on Postgres while a transaction elsewhere is open: a few minutes'],
  server: ['grpc.mjs', 'the job server beside grpc-js and the library'],
  flows: ['flows/run.mjs', 'flows beside make, ninja and snakemake'],
  handlers: ['handlers.mjs', "handlers in processes and threads beside BullMQ's"],
  features: ['features.mjs', 'what groups, limits, events and others cost beside a plain queue'],
  idle: ['idle.mjs', 'a process with empty queues and its Redis server: CPU time with nothing to do'],
  growth: ['growth.mjs', 'the cost of a job as backlog, queues, workers, payloads, groups or kept results grow'],
  startup: ['startup.mjs', 'starting the commands beside bare Node'],
  dashboard: ['dashboard.mjs', 'the first screen with a million jobs and ten thousand queues'],
  publish: ['publish/publish.mjs', 'writes docs/performance.md and its pictures from the output of "stores --json"'],
};

function help() {
  const lines = Object.entries(SUITES).map(([name, [, about]]) => `  ${name.padEnd(10)} ${about}`);
  return `npm run bench -- [SUITE] [options]\n\n${lines.join('\n')}\n\nbench/README.md describes each of them.\n`;
}

function main([first = '', ...rest]) {
  if (first === '--help' || first === '-h') {
    process.stdout.write(help());
    return 0;
  }
  const named = !first.startsWith('-') && first !== '';
  const suite = named ? first : 'stores';
  if (!Object.hasOwn(SUITES, suite)) {
    process.stderr.write(`bench: there is no suite "${suite}"\n\n${help()}`);
    return 2;
  }
  const file = fileURLToPath(new URL(SUITES[suite][0], import.meta.url));
  const args = named ? rest : process.argv.slice(2);
  return spawnSync(process.execPath, [file, ...args], { stdio: 'inherit' }).status ?? 1;
}

process.exitCode = main(process.argv.slice(2));
