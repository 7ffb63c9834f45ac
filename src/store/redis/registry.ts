import { WORKER_REGISTRY } from '../raw-store.js';
import type { View } from './view.js';

/** A process registers a queue that it uses this often, in milliseconds. */
const RENEWED = 15_000;
/**
 * A name that nobody has registered for this long may be removed: longer than RENEWED and any call in progress
 * together.
 */
const FORGOTTEN = 60_000;
const MOST_KNOWN = 10_000;

/**
 * The names of all queues, in a slot of their own. A name is added before anything is written to its queue, and removed
 * when the queue is empty and nobody has used it for a while.
 */
export class Registry {
  /** Until when a name need not be registered again. */
  readonly #known = new Map<string, number>();

  constructor(private readonly view: View) {}

  /** Nothing to wait for if this process has registered it lately. */
  add(queue: string): Promise<void> | undefined {
    const now = performance.now();
    if (now < (this.#known.get(queue) ?? 0) || queue === WORKER_REGISTRY) return undefined;
    return this.#register(queue, now);
  }

  async #register(queue: string, now: number): Promise<void> {
    await this.#run('register', [queue]);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(queue, now + RENEWED);
  }

  /** Cached registrations may be outdated: the server may have restarted empty. */
  readonly forgetAll = (): void => this.#known.clear();

  /**
   * Removes an unused queue and its remaining keys. A process that starts to use it in the meantime registers it again.
   */
  async remove(queue: string): Promise<void> {
    if (!(await this.#retire(queue, true)) || !(await this.#run('unregister', [queue, String(FORGOTTEN)]))) return;
    this.#known.delete(queue);
    if (!(await this.#retire(queue, false))) await this.#run('register', [queue]);
  }

  async #retire(queue: string, onlyLook: boolean): Promise<boolean> {
    return (await this.view.run('retire', queue, [this.view.time(), onlyLook ? '1' : '0'])).reply === 1;
  }

  async #run(name: 'register' | 'unregister', args: string[]): Promise<boolean> {
    const { client, keys } = this.view;
    return (await client.run(name, keys.registry, [this.view.time(), ...args])).reply === 1;
  }
}
