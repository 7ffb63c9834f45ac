import type { NodeEnd } from '../graph/node-spec.js';
import { now } from './clock.js';

const STOPPED = 'the flow was stopped';

/** The state of a map node: one part for each item; its result is the list of the parts' values. */
export class MapItems {
  readonly items: readonly unknown[];
  readonly values: unknown[];
  readonly attempts: Uint16Array;
  readonly waiting: number[] = [];
  /** Number of parts that have not finished. */
  open: number;
  /** Error message of the first part that failed. */
  error: string | undefined;
  readonly startedAt = now();

  /** `list` is the result of the node named `over`; `known` finds parts that an earlier run completed. */
  constructor(list: unknown, over: string, known: (part: number) => NodeEnd | undefined) {
    this.items = Array.isArray(list) ? list : [];
    if (!Array.isArray(list)) this.error = `the result of '${over}' is not a list`;
    this.values = new Array(this.items.length).fill(null);
    this.attempts = new Uint16Array(this.items.length);
    for (let part = 0; part < this.items.length; part++) {
      const end = known(part);
      if (end?.state === 'done') this.values[part] = end.value ?? null;
      else this.waiting.push(part);
    }
    this.open = this.waiting.length;
  }

  ended(part: number, value: unknown, error?: string): void {
    this.values[part] = value ?? null;
    this.error ??= error;
    this.open--;
  }

  /** Gives up all waiting parts. */
  stop(): void {
    this.open -= this.waiting.length;
    if (this.waiting.length > 0) this.error ??= STOPPED;
    this.waiting.length = 0;
  }

  /** Counts a running part that was stopped. */
  lose(): void {
    this.error ??= STOPPED;
    this.open--;
  }
}
