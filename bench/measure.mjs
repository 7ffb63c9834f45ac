// One measurement of one subject, in its own process: the parent sends the task and receives the figures. Runs grow
// until one lasts long enough; it is repeated once, and the repetition counts: everything before it is the warm-up.
import { join } from 'node:path';
import { MEASUREMENTS } from './cases/index.mjs';
import { postgresControl } from './postgres/control.mjs';
import { redisControl } from './redis/control.mjs';
import { load } from './subjects/index.mjs';
import { within } from './wait.mjs';

const FIRST_JOBS = 1000;
const MOST_JOBS = 1_000_000;
const LONG_ENOUGH = 0.6;
const CLOSE_MS = 20_000;

const CONTROLS = {
  redis: ({ server }) => redisControl(server),
  sqlite: filesIn,
  postgres: ({ server }) => postgresControl(server),
};

process.once('disconnect', () => process.exit(1));
process.once('message', async (task) => {
  try {
    reply({ values: await measure(task) });
  } catch (error) {
    reply({ error: error?.message ?? String(error) });
  }
});

function reply(message) {
  process.send(message, () => process.exit(0));
}

async function measure(task) {
  const control = CONTROLS[task.store](task);
  let jobs = FIRST_JOBS;
  let isLast = false;
  for (let turn = 0; ; turn++) {
    const { ms, values } = await runOnce(task, control, jobs, turn);
    if (isLast || ms === Number.POSITIVE_INFINITY) {
      await control.close();
      return values;
    }
    isLast = jobs >= MOST_JOBS || (turn > 0 && ms >= task.targetMs * LONG_ENOUGH);
    if (!isLast) jobs = Math.min(MOST_JOBS, Math.ceil(jobs * Math.min(10, Math.max(1, task.targetMs / ms))));
  }
}

/** One run on fresh data. */
async function runOnce(task, control, jobs, turn) {
  const { name, entry, samples, waiting } = task;
  const { run, options } = MEASUREMENTS.find((measurement) => measurement.name === name);
  const place = await control.freshPlace(turn);
  const { open, measure: measureItself } = await load(entry);
  if (measureItself) return measureItself(name, { place, control, jobs, samples, waiting });
  const subject = await open(place, { ...entry.options, ...options });
  const result = await run({ subject, entry, place, control, jobs, samples, waiting });
  await within(CLOSE_MS, 'closing the store', subject.close());
  return result;
}

function filesIn({ dir }) {
  return {
    async freshPlace(turn) {
      const file = join(dir, `bench-${turn}.db`);
      return { file, url: `sqlite:${file}`, queue: 'bench' };
    },
    close: async () => {},
  };
}
