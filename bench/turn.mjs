// One turn of a subject: its own process, which is killed when it takes too long, and a directory that is removed with
// it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { within } from './wait.mjs';

const TURN_MS = 120_000;
const MEASURE = fileURLToPath(new URL('./measure.mjs', import.meta.url));

/** Returns `{ values }` of one measurement, or `{ error }`. */
export async function takeTurn(task, parent) {
  const dir = await mkdtemp(join(parent, 'turn-'));
  const child = fork(MEASURE, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const gone = once(child, 'exit');
  try {
    child.send({ ...task, dir });
    return await within(TURN_MS, 'the measurement', Promise.race([answer(child), crash(gone)]));
  } catch (error) {
    return { error: error.message };
  } finally {
    child.kill('SIGKILL');
    await gone;
    await rm(dir, { recursive: true, force: true });
  }
}

async function answer(child) {
  const [message] = await once(child, 'message');
  return message;
}

async function crash(gone) {
  const [code, signal] = await gone;
  return { error: `its process ended with ${signal ?? code}` };
}
