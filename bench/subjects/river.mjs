// River is a library for Go, so a program in Go (bench/postgres/river) runs each case by itself and prints what it returns. Only what concerns the
// server is measured here, from outside, as for the other subjects.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compiled, programOf } from '../go.mjs';

const NAME = 'go-river';
const SOURCE = fileURLToPath(new URL('../postgres/river', import.meta.url));
/** Where the program is when it has been compiled. */
export const riverProgram = programOf(NAME);
const PATIENCE_MS = 60_000;
const exec = promisify(execFile);

const CASES = {
  'enqueue one by one': ({ place, jobs }) => run('one-by-one', place, jobs),
  'bulk enqueue': ({ place, jobs }) => run('bulk', place, jobs),
  'drain, concurrency 1': ({ place, jobs }) => run('drain', place, jobs, 1),
  'drain, concurrency 100': ({ place, jobs }) => run('drain', place, jobs, 100),
  'two processes': ({ place, jobs }) => run('two-processes', place, jobs),
  'pickup latency': ({ place, samples }) => run('latency', place, samples),
  'memory per waiting job': memory,
  'server CPU per job': cpu,
};

/** Compiles the program once. */
export async function probe() {
  const { missing } = await compiled(NAME, SOURCE);
  if (missing) throw new Error(missing);
}

/** One run of one case on fresh data: its duration and its values. */
export async function measure(name, task) {
  await run('prepare', task.place);
  return CASES[name](task);
}

async function memory({ place, control, waiting }) {
  const before = await control.heldBytes();
  await run('bulk', place, waiting);
  const after = await control.heldBytes();
  return { ms: Number.POSITIVE_INFINITY, values: { bytes: (after - before) / waiting } };
}

async function cpu({ place, control, jobs }) {
  const before = await control.busyMicroseconds();
  const { ms } = await run('drain', place, jobs, 100);
  const after = await control.busyMicroseconds();
  return { ms, values: { cpu: (after - before) / jobs } };
}

/** A case without a duration, such as that of latencies, is not repeated with more jobs. The program ends with this process, which holds its standard input. */
async function run(name, place, ...numbers) {
  const options = { timeout: PATIENCE_MS, killSignal: 'SIGKILL' };
  try {
    const { stdout } = await exec(riverProgram, [name, place.url, ...numbers.map(String)], options);
    return { ms: Number.POSITIVE_INFINITY, ...JSON.parse(stdout) };
  } catch (error) {
    throw new Error(error.killed ? `${name} took more than ${PATIENCE_MS} ms` : error.stderr || error.message);
  }
}
