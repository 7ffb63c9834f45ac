import { CroreError } from '../../errors.js';

/** Milliseconds between two warnings about a queue. */
const PAUSE = 60_000;
const MOST_QUEUES = 10_000;

/** Warns when a queue drops dead jobs because there are more than it keeps: nothing else would say so. */
export class DropWarnings {
  readonly #seen = new Map<string, { count: number; at: number }>();

  constructor(private readonly onError: (error: Error, what: string) => void) {}

  /** `count`: how many the queue has dropped so far. */
  see(queue: string, count: number): void {
    const last = this.#seen.get(queue);
    const now = performance.now();
    if (count <= (last?.count ?? 0) || (last && now - last.at < PAUSE)) return;
    if (this.#seen.size >= MOST_QUEUES) this.#seen.clear();
    this.#seen.set(queue, { count, at: now });
    const advice = 'remove or retry dead jobs, or keep more of them (keepDead)';
    const error = new CroreError('DEAD_DROPPED', `queue '${queue}' has dropped ${count} dead jobs so far: ${advice}`);
    this.onError(error, 'warning');
  }
}
