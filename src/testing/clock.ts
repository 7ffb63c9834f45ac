import { CroreError } from '../errors.js';

interface Sleeper {
  until: number;
  wake: (error?: Error) => void;
}

/** A clock that only moves when a test moves it. */
export class VirtualClock {
  readonly #sleepers = new Set<Sleeper>();

  constructor(public now: number) {}

  get sleepers(): number {
    return this.#sleepers.size;
  }

  /** When the next sleeper wakes up. */
  get nextWake(): number {
    return Math.min(...[...this.#sleepers].map((sleeper) => sleeper.until));
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const sleeping = new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = () => sleeper.wake(signal!.reason);
      const sleeper: Sleeper = {
        until: this.now + ms,
        wake: (error) => {
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener('abort', abort);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      signal?.addEventListener('abort', abort);
      this.#sleepers.add(sleeper);
    });
    sleeping.catch(() => {}); // the caller may no longer be waiting
    return sleeping;
  }

  moveTo(now: number): void {
    this.now = now;
    const due = [...this.#sleepers].filter((sleeper) => sleeper.until <= now);
    for (const sleeper of due.sort((a, b) => a.until - b.until)) sleeper.wake();
  }

  stop(): void {
    for (const sleeper of [...this.#sleepers]) sleeper.wake(new CroreError('CLOSED', 'the testing kit was closed'));
  }
}

/** A small random generator of numbers in [0, 1); the same seed gives the same numbers. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
