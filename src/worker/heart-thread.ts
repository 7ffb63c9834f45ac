import { parentPort, workerData } from 'node:worker_threads';
import { openStore } from '../store/open.js';
import type { Store } from '../store/store.js';
import type { HeartNews, HeartOrder, HeartSetup, Pulse } from './heart.js';

/** The heartbeat thread: see heart.ts. Times are monotonic. */

interface Session extends Pulse {
  /** The moment up to which the lease is certain. */
  safeUntil: number;
  late: boolean;
  timer: NodeJS.Timeout;
  beating: boolean;
}

const setup = workerData as HeartSetup;
const turns = new Int32Array(setup.loop);
const sessions = new Map<string, Session>();
let opening: Promise<Store> | undefined;
let seenTurns = -1;
let turnedAt = performance.now();

function store(): Promise<Store> {
  opening ??= openStore(setup.url, { timeout: setup.timeout, relaxed: true }).catch((error) => {
    opening = undefined;
    throw error;
  });
  return opening;
}

function tell(worker: string, news: HeartNews['news']): void {
  parentPort!.postMessage({ worker, news } satisfies HeartNews);
}

/** How long the main loop has stood still. */
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
  const sentAt = performance.now();
  try {
    const [alive] = await (await store()).beat([session]);
    if (alive) prolong(session, sentAt);
    else lose(session);
  } catch {
    // not reached: `check` notices when this goes on for too long
  } finally {
    session.beating = false;
  }
}

function prolong(session: Session, sentAt: number): void {
  session.safeUntil = sentAt + session.lease;
  if (!session.late) return;
  session.late = false;
  tell(session.worker, 'recovered');
}

function lose(session: Session): void {
  if (sessions.get(session.worker) !== session) return;
  clearInterval(session.timer);
  sessions.delete(session.worker);
  tell(session.worker, 'lost');
}

/** The worker has to stop before its lease ends, not after: a beat's worth of time is left for that. */
function check(session: Session): void {
  const left = session.safeUntil - performance.now();
  if (left > session.beat / 2 || session.late) return;
  session.late = true;
  tell(session.worker, 'late');
}

function add(pulse: Pulse): void {
  const session: Session = {
    ...pulse,
    safeUntil: performance.now() + pulse.lease,
    late: false,
    beating: false,
    timer: setInterval(() => {
      check(session);
      if (stillFor() < session.hung) void beat(session);
    }, pulse.beat),
  };
  sessions.set(pulse.worker, session);
  void beat(session);
}

parentPort!.on('message', (order: HeartOrder) => {
  if ('add' in order) {
    add(order.add);
  } else if ('remove' in order) {
    clearInterval(sessions.get(order.remove)?.timer);
    sessions.delete(order.remove);
  } else {
    void stop();
  }
});

async function stop(): Promise<void> {
  for (const { timer } of sessions.values()) clearInterval(timer);
  sessions.clear();
  const opened = await opening?.catch(() => undefined);
  await opened?.close();
  parentPort!.close();
}
