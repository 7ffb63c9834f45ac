import type { Signal, Store } from '../../store/store.js';
import type { AwaitedJobs } from './awaited-jobs.js';

/** How many signals may wait for a slow listener; above this, one `reset` replaces them all. */
const MOST = 1_000;

interface Heard {
  work: boolean;
  reset: boolean;
  events: boolean;
  finished: string[];
  cancelled: string[];
}

const nothing = (): Heard => ({ work: false, reset: false, events: false, finished: [], cancelled: [] });

/** Streams the signals of a queue, collecting them while the listener is busy. */
export async function* listenTo(
  store: Store,
  awaited: AwaitedJobs,
  queue: string,
  signal: AbortSignal,
): AsyncGenerator<Heard> {
  let heard = nothing();
  let fresh = true;
  let wake = () => {};
  const stop = store.subscribe(queue, (one) => {
    // What is delivered to a worker of this process concerns nobody else.
    if (one.type === 'delivered' || (one.type === 'finished' && !awaited.has(queue, one.id))) return;
    note(heard, one);
    fresh = true;
    wake();
  });
  const aborted = () => wake();
  signal.addEventListener('abort', aborted);
  try {
    while (!signal.aborted) {
      if (!fresh) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const batch = heard;
      heard = nothing();
      fresh = false;
      yield batch;
    }
  } finally {
    stop();
    signal.removeEventListener('abort', aborted);
  }
}

function note(heard: Heard, signal: Signal): void {
  switch (signal.type) {
    case 'work':
      heard.work = true;
      return;
    case 'events':
      heard.events = true;
      return;
    case 'finished':
      heard.finished.push(signal.id);
      break;
    case 'cancelled':
      heard.cancelled.push(signal.token);
      break;
    case 'reset':
      heard.reset = true;
  }
  if (heard.finished.length + heard.cancelled.length <= MOST) return;
  heard.finished = [];
  heard.cancelled = [];
  heard.reset = true;
}
