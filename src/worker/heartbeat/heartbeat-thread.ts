import { parentPort, workerData } from 'node:worker_threads';
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
  timer: NodeJS.Timeout;
  beating: boolean;
}

const setup = workerData as HeartbeatSetup;
const turns = new Int32Array(setup.loop);
const gate = new Int32Array(setup.gate);
const sessions = new Map<string, Session>();
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

async function beat(session: Session): Promise<void> {
  if (session.beating) return;
  session.beating = true;
  const sentAt = monotonicNow();
  try {
    const [alive] = await (await store()).heartbeat([session]);
    if (alive) prolong(session, sentAt);
    else lose(session);
  } catch {
    // the store was not reached: `check` notices when this lasts too long
  } finally {
    session.beating = false;
  }
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
  clearInterval(session.timer);
  sessions.delete(session.worker);
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
    timer: setInterval(() => {
      check(session);
      if (stillFor() < session.hung) void beat(session);
    }, watched.heartbeatMs),
  };
  sessions.set(session.worker, session);
  void beat(session);
}

/** Lets the thread end by itself: terminating it during a call of the SQLite driver would abort the whole process. */
async function stop(): Promise<void> {
  for (const { timer } of sessions.values()) clearInterval(timer);
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
    clearInterval(sessions.get(order.remove)?.timer);
    sessions.delete(order.remove);
  }
});
