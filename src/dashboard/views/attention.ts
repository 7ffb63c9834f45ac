import { rateText } from '../../engine/input/limits.js';
import type { Attention } from '../api.js';
import type { Glance } from './queue-board.js';

/** A queue without a worker, or with jobs that wait although there are workers, is worth a word after this long, and urgent after that. */
const WAITS = 60_000;
const URGENT = 300_000;
/** How long a queue must have been watched before it is said to grow. */
const LONG_ENOUGH = 10_000;
/** Lines that are shown. */
const MOST = 50;

/** What somebody should look at, most urgent first. */
export function attentionTo(
  glances: readonly Glance[],
  warnings: readonly string[],
  flows: readonly Attention[] = [],
): Attention[] {
  const found: Attention[] = warnings.map((text) => ({ kind: 'store', urgent: true, text }));
  found.push(...flows);
  for (const glance of glances) found.push(...ofQueue(glance));
  return found.sort((a, b) => Number(b.urgent) - Number(a.urgent)).slice(0, MOST);
}

export function ofQueue(glance: Glance): Attention[] {
  const { queue, counts, paused, newlyDead } = glance;
  const found: Attention[] = [];
  if (paused) found.push({ kind: 'paused', urgent: false, queue, text: `Paused; ${are(counts.ready)} ready.` });
  else if (glance.brokenUntil === undefined) found.push(...waiting(glance));
  if (glance.brokenUntil !== undefined) found.push(stopped(glance));
  if (newlyDead > 0)
    found.push({ kind: 'dead', urgent: true, queue, text: `${jobs(newlyDead)} became dead in the last ten minutes.` });
  if (counts.droppedDead !== undefined)
    found.push({
      ...{ kind: 'dropped', urgent: false, queue },
      text: `${jobs(counts.droppedDead)} that were dead have been dropped because there were too many.`,
    });
  return found;
}

function stopped({ queue, counts, brokenUntil }: Glance): Attention {
  const until = new Date(brokenUntil!).toISOString().slice(11, 19);
  const text = `Its breaker is open after failures in a row: nothing starts before ${until} UTC; ${are(counts.ready)} ready.`;
  return { kind: 'breaker', urgent: true, queue, text };
}

function waiting(glance: Glance): Attention[] {
  const { queue, counts, workers, oldest = 0 } = glance;
  if (counts.ready === 0) return [];
  if (workers === 0 && counts.active === 0)
    return [
      {
        kind: 'no-worker',
        urgent: oldest >= WAITS,
        queue,
        text: `${are(counts.ready)} ready, but there is no worker.`,
      },
    ];
  if (oldest < WAITS || !grows(glance)) return [];
  const limit = limitOf(glance);
  if (limit !== undefined) {
    const text = `${are(counts.ready)} ready and ${counts.ready === 1 ? 'waits' : 'wait'} because of its limit of ${limit}.`;
    return [{ kind: 'waiting', urgent: false, queue, text }];
  }
  const text = `The next job has been waiting for ${lasting(oldest)}, and longer all the time, although there are workers.`;
  return [{ kind: 'waiting', urgent: oldest >= URGENT, queue, text }];
}

/** The age of the next job has grown by more than half of the time that has passed: jobs with a delay are old from the beginning. */
function grows({ at, oldest = 0, earlier }: Glance): boolean {
  if (!earlier || at - earlier.at < LONG_ENOUGH) return false;
  return oldest - earlier.oldest > (at - earlier.at) / 2;
}

/** The limit that holds the queue back now, in words. */
function limitOf({ counts, limits }: Glance): string | undefined {
  if (limits.concurrency !== undefined && counts.active >= limits.concurrency) return `${limits.concurrency} at once`;
  if (limits.rate) return rateText(limits.rate);
  if (limits.group?.concurrency !== undefined) return `${limits.group.concurrency} at once for each group`;
  if (limits.group?.ordered) return 'one job of each group after the other';
  return limits.group?.rate && `${rateText(limits.group.rate)} for each group`;
}

function are(count: number): string {
  return `${jobs(count)} ${count === 1 ? 'is' : 'are'}`;
}

function jobs(count: number): string {
  return count === 1 ? '1 job' : `${count.toLocaleString('en')} jobs`;
}

/** Rounded to whole minutes, so that the text does not change with every look. */
function lasting(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`;
}
