import type { Outcome } from '../../dist/job/transitions.js';
import type { EventType } from '../../dist/store/store.js';

/** `info` is absent where the wording is up to the store. */
export interface Told {
  type: EventType;
  id: string;
  at: number;
  info?: string;
}

/** The part of the model for events, which are recorded only while requested. */
export class EventLog {
  readonly all: Told[] = [];
  #eventSteps = 0;

  constructor(private readonly clock: () => number) {}

  record(ms: number): void {
    const now = this.clock();
    const lapsed = this.#eventSteps <= now;
    this.#eventSteps = Math.max(this.#eventSteps, now + ms);
    if (lapsed) this.tell('gap', '', '');
  }

  tell(type: EventType, id: string, info?: string): void {
    const at = this.clock();
    if (this.#eventSteps > at) this.all.push({ type, id, at, info });
  }
}

/** The event for a settled lease. */
export function endOf(id: string, move: Outcome): [EventType, string, string] {
  const error = 'error' in move ? move.error : undefined;
  const later = {
    scheduled: error === undefined ? 'snoozed' : 'retry',
    ready: error === undefined ? 'released' : 'lost',
  };
  const type = move.to === 'scheduled' || move.to === 'ready' ? later[move.to] : move.to;
  return [type as EventType, id, error ?? ''];
}
