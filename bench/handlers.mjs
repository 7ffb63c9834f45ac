// node bench/handlers.mjs [--quick]: what it costs to run a handler in processes or threads, beside BullMQ's sandboxed
// processors on the same Redis server, with a handler that does nothing, two at once; and how a handler that computes scales
// from one process or thread to two. Every turn has a process of its own and an empty server; the figures are medians.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPeers } from './peers.mjs';
import { startRedis } from './redis/server.mjs';
import { connect } from './subjects/root.mjs';
import { within } from './wait.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 1 : 3;
const SIZE = quick ? 5_000 : 20_000;
const TURN = fileURLToPath(new URL('./handlers/turn.mjs', import.meta.url));
const PLACES = ['in process', 'processes', 'threads'];
const NOTHING = { handler: 'noop', count: 2 };
const SUBJECTS = [
  { subject: 'crore', store: 'redis', jobs: 4 * SIZE, ...NOTHING },
  { subject: 'crore', store: 'sqlite', jobs: 4 * SIZE, ...NOTHING },
  { subject: 'bullmq', store: 'redis', jobs: SIZE / 2, ...NOTHING },
];
/** Their handler takes about 20 ms of a core. */
const BUSY = ['crore', 'bullmq'].flatMap((subject) =>
  ['processes', 'threads'].flatMap((place) =>
    [1, 2].map((count) => ({ subject, store: 'redis', place, handler: 'busy', jobs: quick ? 50 : 200, count })),
  ),
);

async function turn(task) {
  const child = fork(TURN, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const gone = once(child, 'exit');
  try {
    child.send(task);
    const crash = gone.then(() => {
      throw new Error(`${task.subject}, ${task.place}: its process ended`);
    });
    crash.catch(() => {});
    const [figures] = await within(180_000, 'the turn', Promise.race([once(child, 'message'), crash]));
    return figures;
  } finally {
    child.kill('SIGKILL');
    await gone;
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const microseconds = (ms) => `${(ms * 1_000).toFixed(0)} µs`;

installPeers((text) => process.stderr.write(`${text}\n`));
const dir = mkdtempSync(join(tmpdir(), 'crore-handlers-'));
const redis = await startRedis(dir);
const control = connect(redis.address);
const rows = SUBJECTS.flatMap((one) => PLACES.map((place) => ({ ...one, place, turns: [] })));
const busyRows = BUSY.map((one) => ({ ...one, turns: [] }));
try {
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { turns, ...row }] of [...rows, ...busyRows].entries()) {
      await control.flushall('SYNC');
      const url = row.store === 'redis' ? redis.address.url : `sqlite:${join(dir, `${round}-${i}.db`)}`;
      turns.push(await turn({ ...row, url }));
    }
  }
} finally {
  control.disconnect();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}
const middle = (row, figure) => median(row.turns.map((one) => one[figure]));
const cells = (...texts) => process.stdout.write(`${texts.map((text) => text.padEnd(15)).join('')}\n`);
cells('', 'store', 'handler', 'jobs/s', 'time a job', 'CPU a job', 'CPU over in process');
for (const row of rows) {
  const { subject, store, place } = row;
  const base = rows.find((one) => one.subject === subject && one.store === store);
  const rate = String(Math.round(1_000 / middle(row, 'ms')));
  const over = row === base ? '' : microseconds(middle(row, 'cpu') - middle(base, 'cpu'));
  cells(subject, store, place, rate, microseconds(middle(row, 'ms')), microseconds(middle(row, 'cpu')), over);
}

cells('', '', 'computes', 'jobs/s with 1', 'with 2', 'ratio');
for (const row of busyRows.filter(({ count }) => count === 1)) {
  const { subject, store, place } = row;
  const other = busyRows.find((one) => one.subject === subject && one.place === place && one.count === 2);
  const [one, two] = [row, other].map((of) => 1_000 / middle(of, 'ms'));
  cells(subject, store, place, one.toFixed(1), two.toFixed(1), (two / one).toFixed(2));
}
