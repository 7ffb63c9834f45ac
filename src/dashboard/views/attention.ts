import type { Attention } from '../api.js';
import type { Glance } from './queue-board.js';

/** A queue without a worker, or with jobs that wait although there are workers, is worth a word after this long, and urgent after that. */
const WAITS = 60_000;
const URGENT = 300_000;
/** Lines that are shown. */
const MOST = 50;

/** What somebody should look at, most urgent first. */
export function attentionTo(glances: readonly Glance[], warnings: readonly string[]): Attention[] {
  const found: Attention[] = warnings.map((text) => ({ kind: 'store', urgent: true, text }));
  for (const glance of glances) found.push(...ofQueue(glance));
  return found.sort((a, b) => Number(b.urgent) - Number(a.urgent)).slice(0, MOST);
}

export function ofQueue(glance: Glance): Attention[] {
  const { queue, counts, paused, newlyDead } = glance;
  const found: Attention[] = [];
  if (paused) found.push({ kind: 'paused', urgent: false, queue, text: `Paused, with ${jobs(counts.ready)} ready.` });
  else found.push(...waiting(glance));
  if (newlyDead > 0)
    found.push({ kind: 'dead', urgent: true, queue, text: `${jobs(newlyDead)} became dead in the last ten minutes.` });
  if (counts.droppedDead !== undefined)
    found.push({
      ...{ kind: 'dropped', urgent: false, queue },
      text: `${jobs(counts.droppedDead)} that were dead have been dropped because there were too many.`,
    });
  return found;
}

function waiting({ queue, counts, workers, oldest = 0, oldestBefore }: Glance): Attention[] {
  if (counts.ready === 0) return [];
  if (workers === 0 && counts.active === 0)
    return [{ kind: 'no-worker', urgent: oldest >= WAITS, queue, text: `${jobs(counts.ready)} ready, and no worker.` }];
  const grows = oldestBefore === undefined || oldest >= oldestBefore;
  if (oldest < WAITS || !grows) return [];
  const text = `The next job has been ready for ${lasting(oldest)}, although there are workers: the backlog grows.`;
  return [{ kind: 'waiting', urgent: oldest >= URGENT, queue, text }];
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
