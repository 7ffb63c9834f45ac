// The minimum that PostgreSQL needs: one INSERT from arrays, and a DELETE of a hundred rows that nobody else has locked. A crash
// loses what was deleted: no leases, ids, retries, times or priorities.
import { coalesce } from './coalesce.mjs';
import { connectPostgres } from './root.mjs';

const BATCH = 100;
const LANES = 4;
const POOL = 8;
const POLL_MS = 5;
const CHANNEL = 'bench';

const TABLE = 'create table if not exists job (id bigint generated always as identity primary key, body text not null)';
const INSERT = 'insert into job (body) select * from unnest($1::text[])';
const INSERT_AND_NOTIFY = `with added as (${INSERT} returning 1) select pg_notify('${CHANNEL}', '')`;
const TAKE = `delete from job where id = any(array(
  select id from job order by id limit ${BATCH} for update skip locked)) returning body`;

export async function open(place, { latency }) {
  const sql = connectPostgres(place, { max: POOL });
  await sql.unsafe(TABLE);
  const push = async (payloads) => {
    const bodies = `{${payloads.map(({ text }) => `"${text.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;
    await sql.unsafe(latency ? INSERT_AND_NOTIFY : INSERT, [bodies], { prepare: true });
  };
  return {
    enqueueOne: coalesce(push),
    enqueueMany: push,
    work: (concurrency, onJob) => work(sql, concurrency, onJob),
    async pending() {
      const [{ n }] = await sql`select count(*)::int as n from job`;
      return n;
    },
    close: () => sql.end({ timeout: 1 }),
  };
}

async function work(sql, concurrency, onJob) {
  const state = { closed: false, waiting: [] };
  const wake = () => {
    for (const resume of state.waiting.splice(0)) resume();
  };
  const listening = await sql.listen(CHANNEL, wake);
  const lanes = Array.from({ length: concurrency === 1 ? 1 : LANES }, () => lane(sql, state, onJob));
  return {
    async close() {
      state.closed = true;
      wake();
      await Promise.all(lanes);
      await listening.unlisten();
    },
  };
}

/** Takes batches until closed; on an empty table it waits for a notification, and looks again after a while. */
async function lane(sql, state, onJob) {
  while (!state.closed) {
    const rows = await sql.unsafe(TAKE, [], { prepare: true });
    for (const { body } of rows) onJob(body);
    if (rows.length > 0 || state.closed) continue;
    await new Promise((resume) => {
      state.waiting.push(resume);
      setTimeout(resume, POLL_MS);
    });
  }
}
