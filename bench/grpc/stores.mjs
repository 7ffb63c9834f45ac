// Stores that keep nothing durable, so that only the cost of the protocol remains.
import { DEFAULT_SPEC } from '../../dist/job/spec.js';

/** Verbs of a store that no call of this benchmark reaches. */
const UNUSED = [
  'push',
  'recordProgress',
  'leasesOf',
  'get',
  'list',
  'workers',
  'cancel',
  'rerun',
  'update',
  'remove',
  'configure',
  'obliterate',
  'watchForEnd',
  'dependents',
  'move',
];

const CREATED = { outcome: 'created' };
const COUNTS = { blocked: 0, scheduled: 0, ready: 0, active: 0, done: 0, dead: 0, cancelled: 0 };

function entryOf(id, payload, spec, n) {
  const worker = 'bench';
  const token = `1.1-000.${n}`;
  const counts = { priority: 0, attempt: 1, crashes: 0, createdAt: 0 };
  const job = { queue: 'bench', id, state: 'active', payload, ...counts, spec, worker, token };
  return { lease: { worker, token, id }, job };
}

/** What both stores have in common. */
function keepingNothing() {
  return {
    maxParallelClaims: 1,
    warnings: [],
    now: () => Date.now(),
    add: async (_queue, all) => all.map(() => CREATED),
    settle: async (_queue, all) => all.map(() => true),
    reportSuccess: async (_queue, ids) => ids.map(() => true),
    join: async () => {},
    heartbeat: async (all) => all.map(() => true),
    leave: async () => {},
    sweep: async () => ({ lost: [], more: false }),
    queues: async () => [],
    schedules: { list: async () => [] },
    settings: async () => ({ paused: false, limits: {} }),
    count: async () => COUNTS,
    subscribe: () => () => {},
    close: async () => {},
    ...Object.fromEntries(
      UNUSED.map((verb) => [verb, () => Promise.reject(new Error(`a store that keeps nothing has no ${verb}`))]),
    ),
  };
}

/** Forgets what is added, and has `jobs` jobs for each worker that joins. */
export function forgettingStore(jobs) {
  let given = 0;
  const waiting = Array.from({ length: jobs }, (_x, i) =>
    entryOf(`job-${i}`, '["user@example.org","4711"]', DEFAULT_SPEC, i),
  );
  return {
    ...keepingNothing(),
    claim: async (_session, n) => {
      const entries = waiting.slice(given, given + n);
      given += entries.length;
      return { status: 'ok', entries, more: given < jobs };
    },
    join: async () => {
      given = 0;
    },
  };
}

/** Passes what is added on to whoever claims, through an array. */
export function passingStore() {
  const listeners = new Set();
  let waiting = [];
  let at = 0;
  let claimed = 0;
  return {
    ...keepingNothing(),
    add: async (_queue, all) => {
      for (const job of all) waiting.push(job);
      for (const listener of listeners) listener({ type: 'work' });
      return all.map(() => CREATED);
    },
    claim: async (_session, n) => {
      const taken = waiting.slice(at, at + n);
      at += taken.length;
      if (at > 10_000) {
        waiting = waiting.slice(at);
        at = 0;
      }
      const entries = taken.map(({ id, payload, spec }) => entryOf(id, payload, spec, claimed++));
      return { status: 'ok', entries, more: at < waiting.length };
    },
    subscribe: (_queue, listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
