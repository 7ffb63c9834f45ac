// The minimum that Redis needs for work that survives its worker: variadic LPUSH, a script that moves a hundred items
// from a list to a hash of leases, and one that deletes a hundred leases. No ids, retries, times or priorities.
// With `records`, what a job that can be found by its id needs: a record in a hash, and ids in the list and in the leases.
import { coalesce } from './coalesce.mjs';
import { connect } from './root.mjs';

const BATCH = 100;
const LANES = 8;
const BLOCK_SECONDS = 1;

// KEYS: list, leases. ARGV: number of items, number of the first lease. Reply: the items.
const CLAIM = `
local items = redis.call('RPOP', KEYS[1], ARGV[1])
if not items then return {} end
local leases = {}
for i, item in ipairs(items) do
  leases[2 * i - 1] = ARGV[2] + i
  leases[2 * i] = item
end
redis.call('HSET', KEYS[2], unpack(leases))
return items`;

// KEYS: leases. ARGV: number of leases, number of the first lease. Reply: how many were held.
const ACK = `
local leases = {}
for i = 1, ARGV[1] do leases[i] = ARGV[2] + i end
return redis.call('HDEL', KEYS[1], unpack(leases))`;

// KEYS: list, records. ARGV: id, record, id, record …
const ADD_RECORDS = `
local ids = {}
for i = 1, #ARGV, 2 do ids[(i + 1) / 2] = ARGV[i] end
redis.call('HSET', KEYS[2], unpack(ARGV))
return redis.call('LPUSH', KEYS[1], unpack(ids))`;

// KEYS: list, leases, records. ARGV: number of items, number of the first lease. Reply: the records.
const CLAIM_RECORDS = `
local ids = redis.call('RPOP', KEYS[1], ARGV[1])
if not ids then return {} end
local leases = {}
for i, id in ipairs(ids) do
  leases[2 * i - 1] = ARGV[2] + i
  leases[2 * i] = id
end
redis.call('HSET', KEYS[2], unpack(leases))
return redis.call('HMGET', KEYS[3], unpack(ids))`;

// KEYS: leases, records. ARGV: number of leases, number of the first lease. Reply: how many were held.
const ACK_RECORDS = `
local leases = {}
for i = 1, ARGV[1] do leases[i] = ARGV[2] + i end
local ids = redis.call('HMGET', KEYS[1], unpack(leases))
redis.call('HDEL', KEYS[2], unpack(ids))
return redis.call('HDEL', KEYS[1], unpack(leases))`;

export async function open(place, { records = false }) {
  const client = connect(place);
  client.defineCommand('addBatch', { numberOfKeys: 2, lua: ADD_RECORDS });
  client.defineCommand('claimBatch', { numberOfKeys: records ? 3 : 2, lua: records ? CLAIM_RECORDS : CLAIM });
  client.defineCommand('ackBatch', { numberOfKeys: records ? 2 : 1, lua: records ? ACK_RECORDS : ACK });
  const keys = {
    list: place.queue,
    leases: `${place.queue}:leases`,
    single: `${place.queue}:single`,
    records: records ? [`${place.queue}:records`] : [],
  };
  let last = 0;
  const add = (payloads) =>
    client.addBatch(keys.list, keys.records[0], ...payloads.flatMap(({ text }) => [`${process.pid}-${last++}`, text]));
  const pushPlain = (payloads) => client.lpush(keys.list, ...payloads.map(({ text }) => text));
  const push = records ? add : pushPlain;
  await client.ping();
  return {
    enqueueOne: coalesce(push),
    enqueueMany: push,
    work: (concurrency, onJob) => work(place, client, keys, concurrency, onJob),
    pending: async () => (await client.llen(keys.list)) + (await client.hlen(keys.leases)),
    close: () => client.quit(),
  };
}

async function work(place, client, keys, concurrency, onJob) {
  const blocking = connect(place);
  await blocking.ping();
  const state = { closed: false, leases: 0, client, blocking, keys, onJob };
  const lanes = Array.from({ length: concurrency === 1 ? 1 : LANES }, () => lane(state));
  return {
    async close() {
      state.closed = true;
      blocking.disconnect();
      await Promise.all(lanes);
    },
  };
}

/** Claims and acks until closed; on an empty queue all lanes share one wait for an item. */
async function lane(state) {
  while (!state.closed) {
    if (await runBatch(state)) continue;
    state.idle ??= runSingle(state).finally(() => {
      state.idle = undefined;
    });
    await state.idle;
  }
}

async function runBatch(state) {
  const { client, keys, onJob } = state;
  const first = state.leases;
  state.leases += BATCH;
  const items = await client.claimBatch(keys.list, keys.leases, ...keys.records, BATCH, first);
  if (items.length === 0) return false;
  for (const item of items) onJob(item);
  await client.ackBatch(keys.leases, ...keys.records, items.length, first);
  return true;
}

/** Takes one item with a blocking move, which is also its lease; closing interrupts the wait. */
async function runSingle(state) {
  const { client, blocking, keys, onJob } = state;
  const item = await blocking.blmove(keys.list, keys.single, 'RIGHT', 'LEFT', BLOCK_SECONDS).catch((error) => {
    if (!state.closed) throw error;
    return null;
  });
  if (item === null) return;
  onJob(keys.records.length > 0 ? await client.hget(keys.records[0], item) : item);
  await client.lrem(keys.single, 1, item);
  if (keys.records.length > 0) await client.hdel(keys.records[0], item);
}
