import { pause } from '../support/lab.js';
import type { Crew, Times } from './crew.js';
import type { Target } from './target.js';

/** How often each kind of fault occurs, in milliseconds; `pace` makes all of them more frequent. */
const KILL = 4_000;
const STOP = 20_000;
const LOOK = 50;

interface Planned {
  kind: string;
  every: number;
  next: number;
  run: () => Promise<void>;
}

/** Injects faults from `start` to `stop`, one after the other except for suspended workers. */
export class Injector {
  readonly #planned: Planned[] = [];
  #victim = 0;
  #stopping: Promise<void> = Promise.resolve();
  #running: Promise<void> | undefined;
  #over = false;

  constructor(
    private readonly crew: Crew,
    private readonly target: Target,
    times: Times,
    private readonly victims: number,
    pace: number,
  ) {
    this.#plan('kill', KILL / pace, async () => void this.crew.kill(this.#next()));
    this.#plan('SIGSTOP', STOP / pace, async () => {
      await this.#stopping;
      this.#stopping = this.crew.suspend(this.#next(), times.lease + 500);
    });
    for (const [kind, { every, run }] of Object.entries(target.faults)) {
      this.#plan(kind, every / pace, async () => {
        const fault = this.crew.note(kind);
        await run();
        fault.to = Date.now();
      });
    }
  }

  /** From now on; the first of each kind after a quarter of its interval. */
  start(): void {
    this.#over = false;
    const now = performance.now();
    for (const one of this.#planned) one.next = now + one.every / 4;
    this.#running = this.#loop();
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#running;
    await this.#stopping;
  }

  async restart(): Promise<void> {
    if (!this.target.restart) return;
    const fault = this.crew.note('restart');
    await this.target.restart();
    fault.to = Date.now();
  }

  #plan(kind: string, every: number, run: () => Promise<void>): void {
    this.#planned.push({ kind, every, next: 0, run });
  }

  #next(): number {
    this.#victim = (this.#victim + 1) % this.victims;
    return this.#victim;
  }

  async #loop(): Promise<void> {
    while (!this.#over) {
      for (const one of this.#planned.filter(({ next }) => next <= performance.now())) {
        await one.run();
        one.next = performance.now() + one.every;
      }
      await pause(LOOK);
    }
  }
}
