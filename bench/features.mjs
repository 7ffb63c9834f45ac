// node bench/features.mjs [--quick] [--only TEXT]: the cost of limits, groups, events, a breaker, batches, middleware, codecs, children and others, as ratios
// to the plain queue of the same run. Each variant runs once in every round. The figures are medians relative to the plain queue's: of the time for
// adding and working, and of the CPU time (this process and the Redis server) for working, which is by far the more
// stable one.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '../dist/index.js';
import { busyMicroseconds } from './redis/control.mjs';
import { startRedis } from './redis/server.mjs';
import { connect } from './subjects/root.mjs';

const quick = process.argv.includes('--quick');
const JOBS = quick ? 5_000 : 20_000;
const ROUNDS = quick ? 3 : 7;

const only = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1] : '';

const ALL = {
  plain: {},
  'concurrency of the queue': { limits: { concurrency: 1_000 } },
  'concurrency that binds': { limits: { concurrency: 150 } },
  'rate of the queue': { limits: { rate: { count: 1_000_000, per: '1s' } } },
  'groups, no limit': { groups: 100 },
  'concurrency per group': { groups: 100, limits: { group: { concurrency: 100 } } },
  'the same, where it binds': { groups: 100, limits: { group: { concurrency: 2 } } },
  'groups in order': { groups: 100, limits: { group: { ordered: true } } },
  'rate per group': { groups: 100, limits: { group: { rate: { count: 100_000, per: '1s' } } } },
  'events, somebody listens': { events: true },
  'a breaker': { breaker: { failures: 20, pause: '1m' } },
  'batches of 100': { batch: { size: 100 } },
  'batches of 100 by group': { groups: 100, batch: { size: 100, by: 'group' } },
  'middleware around add': { middleware: true },
  'middleware of a worker': { around: true },
  'listeners of a worker': { listeners: true },
  'a codec: AES-GCM': { codec: aes() },
  retryFor: { options: { retryFor: '24h' } },
  'added elsewhere and moved': { moved: true },
  'members of a batch': { members: true },
  'children of one job': { children: true },
};

/** The codec of examples/codecs/encryption.mjs, with one key. */
function aes() {
  const key = randomBytes(32);
  return {
    encode(bytes) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
    },
    decode(bytes) {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 });
      decipher.setAuthTag(bytes.subarray(-16));
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    },
  };
}

/** Runs one variant on fresh data: leftovers of another variant, in the store or in the server's memory, must not count. */
async function turn(url, control, variant) {
  const {
    limits,
    groups,
    events,
    breaker,
    batch,
    middleware,
    around,
    listeners,
    codec,
    options,
    moved,
    members,
    children,
  } = variant;
  await control?.flushall('SYNC');
  const crore = await open(url, { onError: () => {} });
  const queue = crore.queue('bench', codec ? { codec } : {});
  if (limits) await queue.setLimits(limits);
  if (breaker) await queue.setBreaker(breaker);
  if (middleware) queue.use((_job, next) => next());
  const stream = events ? await queue.events() : undefined;
  stream?.on('done', () => {});
  const owner = members || children ? await crore.queue('owner').addBatch(null) : undefined;
  const jobs = Array.from({ length: JOBS }, (_x, i) => ({
    payload: { n: i, text: 'x'.repeat(80) },
    ...options,
    ...(groups ? { group: `g${i % groups}` } : {}),
    ...(members ? { batch: owner } : {}),
    ...(children ? { parent: { queue: 'owner', id: owner.id } } : {}),
  }));
  await queue.pause();
  const beganAdd = performance.now();
  await (moved ? crore.queue('elsewhere') : queue).addMany(jobs);
  if (moved) await crore.queue('elsewhere').move({}, 'bench');
  const added = performance.now() - beganAdd;
  let done = 0;
  const busy = await busySince(control);
  const began = performance.now();
  let worker;
  await new Promise((resolve) => {
    const count = (jobs) => {
      done += jobs;
      if (done === JOBS) resolve();
    };
    worker = batch
      ? queue.workBatch(async (jobs) => count(jobs.length), batch)
      : queue.work(async () => count(1), { concurrency: 100 });
    if (around) worker.use((_job, next) => next());
    if (listeners) for (const event of ['completed', 'failed', 'drained']) worker.on(event, () => {});
    void queue.resume();
  });
  const drained = performance.now() - began;
  const cpu = await busy();
  stream?.close();
  await worker.close();
  await crore.close();
  return { added, drained, cpu };
}

/** CPU time of this process and of the server from now on. */
async function busySince(control) {
  const own = process.cpuUsage();
  const server = control ? await busyMicroseconds(control) : 0;
  return async () => {
    const { user, system } = process.cpuUsage(own);
    return user + system + (control ? (await busyMicroseconds(control)) - server : 0);
  };
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

const VARIANTS = Object.fromEntries(Object.entries(ALL).filter(([name]) => name === 'plain' || name.includes(only)));

async function measure(store, urlOf, control) {
  const times = new Map(Object.keys(VARIANTS).map((name) => [name, { added: [], drained: [], cpu: [] }]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, variant] of Object.entries(VARIANTS)) {
      const taken = await turn(urlOf(`${name}-${round}`), control, variant);
      if (round === 0) continue; // the first round is the warm-up
      for (const [figure, value] of Object.entries(taken)) times.get(name)[figure].push(value);
    }
  }
  const plain = times.get('plain');
  for (const [name, mine] of times) {
    const ratio = (figure) => `${(median(mine[figure]) / median(plain[figure])).toFixed(2)}x`;
    const figures = `add ${ratio('added')}  work ${ratio('drained')}  cpu of work ${ratio('cpu')}`;
    process.stdout.write(`${store.padEnd(7)} ${name.padEnd(26)} ${figures}\n`);
  }
}

const dir = mkdtempSync(join(tmpdir(), 'crore-features-'));
const redis = await startRedis(dir);
const control = connect(redis.address);
try {
  await measure('redis', () => redis.address.url, control);
  await measure('sqlite', (name) => `sqlite:${join(dir, `${name.replaceAll(/\W/g, '-')}.db`)}`);
} finally {
  control.disconnect();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}
process.exit(0);
