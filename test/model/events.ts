import { expect } from 'vitest';
import type { StoredEvent } from '../../dist/store/store.js';
import type { Told } from './event-log.js';
import type { Sides } from './sides.js';
import type { EventStep } from './steps.js';

/** The position to read from to see all events. */
const BEGINNING = '0';

/** A reader that resumes where it was, or some events earlier. */
export class EventSteps {
  /** Positions of the events it has read, for each store. */
  readonly #positions: string[][];

  constructor(private readonly sides: Sides) {
    this.#positions = sides.stores.map(() => []);
  }

  async run(step: EventStep): Promise<void> {
    if (step.do === 'read') await this.#read(step.back, step.limit);
    else await this.#record(step.ms);
  }

  /** Reads everything from the beginning, in pages. */
  async readAll(): Promise<void> {
    const { all } = this.sides.model.log;
    for (let known = 0; known < all.length; known += 100) await this.#readFrom(known, 100);
    await this.#readFrom(all.length, 100);
  }

  async #record(ms: number): Promise<void> {
    const { log } = this.sides.model;
    log.record(ms);
    const last = await this.sides.each((store) => store.events.record(this.sides.queue, ms));
    // It returns the position of the last event, so nothing comes after it.
    for (const [i, store] of this.sides.stores.entries())
      expect(await store.events.read(this.sides.queue, last[i]!, 1)).toEqual({ events: [], gap: false });
  }

  #read(back: number, limit: number): Promise<void> {
    return this.#readFrom(Math.max(0, this.#positions[0]!.length - back), limit);
  }

  /** Reads events starting with number `from`, resuming after the one before it. */
  async #readFrom(from: number, limit: number): Promise<void> {
    const { queue, model } = this.sides;
    const wanted = model.log.all.slice(from, from + limit);
    const pages = await this.sides.each((store, i) =>
      store.events.read(queue, from === 0 ? BEGINNING : this.#positions[i]![from - 1]!, limit),
    );
    for (const [i, { events, gap }] of pages.entries()) {
      expect(events.map(shown)).toEqual(wanted.map((told, k) => filled(told, pages[0]!.events[k])));
      expect(gap).toBe(from === 0);
      const positions = events.map(({ position }) => position);
      const known = this.#positions[i]!.slice(from, from + limit);
      expect(positions.slice(0, known.length)).toEqual(known);
      this.#positions[i]!.push(...positions.slice(known.length));
    }
  }
}

function shown({ type, id, at, info }: StoredEvent): Told {
  return { type, id, at, info };
}

/** Where the wording is up to the store, it is at least the same in all stores. */
function filled(told: Told, first: StoredEvent | undefined): Told {
  return { ...told, info: told.info ?? first?.info };
}
