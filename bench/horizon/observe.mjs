// One subject beside an open transaction.
import { fill } from '../cases/enqueue.mjs';
import { load } from '../subjects/index.mjs';
import { connectPostgres } from '../subjects/root.mjs';
import { sleep, until, within } from '../wait.mjs';

const CONCURRENCY = 10;
const TICK_MS = 25;
const PATIENCE_MS = 120_000;
const PADDING = 'x'.repeat(60);

/** Adds jobs at a steady rate and takes samples: `{ at, jobs, buffers, p50 }`, at in seconds, p50 in milliseconds. */
export async function observe(setup, onSample) {
  const { entry, place, rate, seconds, samples, behind, goesOn } = setup;
  const { open } = await load(entry);
  const subject = await open(place, { ...entry.options, latency: true });
  const state = { waits: [], handled: 0, added: 0 };
  const worker = await subject.work(CONCURRENCY, (job) => note(state, job));
  const taken = [];
  const sample = async (at) => {
    const [{ buffers }] = await claimed(setup);
    const p50 = median(state.waits.splice(0));
    const one = { at: round(at), jobs: state.handled, buffers: round(buffers), p50: round(p50) };
    taken.push(one);
    onSample(one);
  };
  const holder = await holdTransaction(place);
  try {
    await claimed(setup);
    const started = performance.now();
    for (let i = 1; i <= samples; i++) {
      await produce(subject, state, rate, started + (i * seconds * 1000) / samples);
      await sample((performance.now() - started) / 1000);
    }
    if (goesOn) {
      // The same beside many more dead rows: these jobs end quickly, and then the steady rate continues.
      await fill(subject, behind);
      state.added += behind;
      await until(PATIENCE_MS, 'handling the jobs behind', async () => state.handled >= state.added);
      state.waits = [];
      await claimed(setup);
      await produce(subject, state, rate, performance.now() + (seconds * 1000) / samples);
      await sample((performance.now() - started) / 1000);
    }
  } finally {
    await holder.end({ timeout: 1 });
  }
  await within(PATIENCE_MS, 'closing the worker', worker.close());
  await subject.close();
  return taken;
}

/** Payloads of ours and of the peers are the same object; jobs that only fill the queue have no time. */
function note(state, job) {
  const { sentAt } = job?.payload ?? job?.data ?? job;
  state.handled += 1;
  if (sentAt !== undefined) state.waits.push(performance.now() - sentAt);
}

async function produce(subject, state, rate, end) {
  const each = Math.round((rate * TICK_MS) / 1000);
  const calls = [];
  for (let next = performance.now(); next < end; next += TICK_MS) {
    await sleep(Math.max(0, next - performance.now()));
    const value = { sentAt: performance.now(), url: PADDING };
    const jobs = Array.from({ length: each }, () => ({ value, text: JSON.stringify(value) }));
    state.added += each;
    calls.push(subject.enqueueMany(jobs));
  }
  await within(PATIENCE_MS, 'adding jobs', Promise.all(calls));
}

/** A snapshot that stays: everything that dies from now on has to be kept. */
async function holdTransaction(place) {
  const sql = connectPostgres(place);
  await sql.unsafe('begin isolation level repeatable read');
  await sql.unsafe('select txid_current()');
  return sql;
}

/** Buffers per call of the statement that claims, since the last time. */
async function claimed({ admin, place, claim }) {
  await admin.unsafe('create extension if not exists pg_stat_statements');
  const rows = await admin.unsafe(
    `select sum(shared_blks_hit + shared_blks_read)::float / sum(calls) as buffers from pg_stat_statements s join pg_database d on d.oid = s.dbid
      where d.datname = $1 and s.query ilike $2 and s.rows > 0`,
    [place.database, claim],
  );
  await admin.unsafe('select pg_stat_statements_reset()');
  return rows;
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? null;
}

function round(value) {
  return value === null ? null : Number(Number(value).toPrecision(3));
}
