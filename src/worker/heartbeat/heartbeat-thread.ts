import { parentPort, workerData } from 'node:worker_threads';
import { isCroreError } from '../../errors.js';
import { openStore } from '../../store/open.js';
import type { Store } from '../../store/store.js';
import {
  GATE,
  type HeartbeatCommand,
  type HeartbeatReply,
  type HeartbeatSetup,
  monotonicNow,
  type WatchedSession,
} from './heartbeat-messages.js';

/** The heartbeat thread: see heartbeat.ts. */

interface Session extends WatchedSession {
  /** The lease is certain to hold until this time of `monotonicNow`. */
  safeUntil: number;
  /** One of our heartbeats got through. */
  taken: boolean;
  late: boolean;
  beating: boolean;
}

const setup = workerData as HeartbeatSetup;
const turns = new Int32Array(setup.loop);
const gate = new Int32Array(setup.gate);
const sessions = new Map<string, Session>();
/** One timer for all sessions with the same interval, so that their heartbeats are one call. */
const timers = new Map<number, NodeJS.Timeout>();
let opening: Promise<Store> | undefined;
let seenTurns = -1;
let turnedAt = performance.now();

function store(): Promise<Store> {
  // Whichever side sets the gate first wins: either the thread has to end by itself from now on, or it is about to be terminated.
  if (Atomics.compareExchange(gate, 0, GATE.open, GATE.busy) === GATE.shut) return new Promise(() => {});
  opening ??= openStore(setup.url, { timeout: setup.timeout, relaxed: true }).catch((error) => {
    opening = undefined;
    throw error;
  });
  return opening;
}

function notify(worker: string, change: HeartbeatReply['change']): void {
  parentPort!.postMessage({ worker, change } satisfies HeartbeatReply);
}

/** How long the main loop has not made a turn. */
function stillFor(): number {
  const now = performance.now();
  const current = Atomics.load(turns, 0);
  if (current !== seenTurns) {
    seenTurns = current;
    turnedAt = now;
  }
  return now - turnedAt;
}

async function beat(some: readonly Session[]): Promise<void> {
  const resting = some.filter((session) => !session.beating);
  if (resting.length === 0) return;
  for (const session of resting) session.beating = true;
  const sentAt = monotonicNow();
  try {
    const alive = await (await store()).heartbeat(resting);
    resting.forEach((session, i) => {
      if (alive[i]) prolong(session, sentAt);
      else lose(session);
    });
  } catch (error) {
    // A queue that cannot be written must not take the others with it. Where the store was not reached, `check` notices when this lasts too long.
    if (resting.length > 1 && !(isCroreError(error) && error.code === 'STORE_UNREACHABLE')) beatOneByOne(resting);
  } finally {
    for (const session of resting) session.beating = false;
  }
}

function beatOneByOne(some: readonly Session[]): void {
  setImmediate(() => {
    for (const session of some) void beat([session]);
  });
}

function prolong(session: Session, sentAt: number): void {
  session.safeUntil = sentAt + session.lease;
  if (!session.taken) notify(session.worker, 'taken');
  session.taken = true;
  if (!session.late) return;
  session.late = false;
  notify(session.worker, 'recovered');
}

function lose(session: Session): void {
  if (sessions.get(session.worker) !== session) return;
  remove(session.worker);
  notify(session.worker, 'lost');
}

/** The worker has to stop before its lease ends, so it is reported late up to half a heartbeat interval early. */
function check(session: Session): void {
  const left = session.safeUntil - monotonicNow();
  if (left > session.heartbeatMs / 2 || session.late) return;
  session.late = true;
  notify(session.worker, 'late');
}

function add(watched: WatchedSession): void {
  const session: Session = {
    ...watched,
    safeUntil: watched.since + watched.lease,
    taken: false,
    late: false,
    beating: false,
  };
  sessions.set(session.worker, session);
  const { heartbeatMs } = watched;
  if (!timers.has(heartbeatMs))
    timers.set(
      heartbeatMs,
      setInterval(() => tick(heartbeatMs), heartbeatMs),
    );
  beatSoon(session);
}

let fresh: Session[] = [];

/** Those that are added together have their first heartbeat together. */
function beatSoon(session: Session): void {
  fresh.push(session);
  if (fresh.length > 1) return;
  setImmediate(() => {
    const some = fresh;
    fresh = [];
    void beat(some.filter((one) => sessions.get(one.worker) === one));
  });
}

function tick(heartbeatMs: number): void {
  const mine = [...sessions.values()].filter((session) => session.heartbeatMs === heartbeatMs);
  for (const session of mine) check(session);
  const still = stillFor();
  void beat(mine.filter(({ hung }) => still < hung));
}

function remove(worker: string): void {
  const session = sessions.get(worker);
  sessions.delete(worker);
  if (!session || [...sessions.values()].some(({ heartbeatMs }) => heartbeatMs === session.heartbeatMs)) return;
  clearInterval(timers.get(session.heartbeatMs));
  timers.delete(session.heartbeatMs);
}

/** Lets the thread end by itself: terminating it during a call of the SQLite driver would abort the whole process. */
async function stop(): Promise<void> {
  for (const timer of timers.values()) clearInterval(timer);
  sessions.clear();
  await opening?.then((open) => open.close()).catch(() => {}); // there is nothing left to close
  parentPort!.close();
}

parentPort!.on('message', (order: HeartbeatCommand) => {
  if ('stop' in order) {
    void stop();
  } else if ('add' in order) {
    add(order.add);
  } else if ('renewed' in order) {
    const session = sessions.get(order.renewed);
    if (session) session.safeUntil = Math.max(session.safeUntil, order.since + session.lease);
  } else if ('remove' in order) {
    remove(order.remove);
  }
});
