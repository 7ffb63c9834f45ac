import type { NewJob } from '../../../job/job.js';
import { type AddOutcome, type Capacity, CREATED, FULL } from '../../store.js';
import { JsonArg } from '../connection/arguments.js';
import { FORMAT } from '../migration.js';
import { arePlain, otherQueues, writeJob } from '../records/new-jobs.js';
import type { View } from '../view.js';
import { TransactionCaller } from './caller.js';
import { runnerOf } from './connections.js';

/** Adds jobs through clients of the application, inside its transactions. */
export class TransactionalAdder {
  readonly #caller: TransactionCaller;

  constructor(
    private readonly view: View,
    identity: unknown,
  ) {
    this.#caller = new TransactionCaller(view.client, identity, 'queue');
  }

  /** The jobs exist if and only if the transaction commits. */
  async add(connection: unknown, queue: string, jobs: readonly NewJob[], limits: Capacity): Promise<AddOutcome[]> {
    runnerOf(connection);
    if (jobs.length === 0) return [];
    const rows = await this.#caller.call(connection, 'add_in', (store, cross) =>
      this.#argument({ store, cross, queue, jobs, limits }),
    );
    return outcomes(jobs, rows as OutcomeRow[]);
  }

  #argument({ store, cross, queue, jobs, limits: { count, bytes } }: Call): string {
    const call = {
      ...{ store, format: FORMAT, now: this.view.time(), cross, queue },
      ...{ jobs: jobs.map(writeJob), plain: arePlain(jobs), others: otherQueues(queue, jobs) },
      ...{ most: count ?? null, bytes: bytes ?? null },
    };
    return new JsonArg(call).text!;
  }
}

interface Call {
  store: unknown;
  cross: boolean;
  queue: string;
  jobs: readonly NewJob[];
  limits: Capacity;
}

type OutcomeRow = [place: number, outcome: string, id: string];

function outcomes(jobs: readonly NewJob[], rows: readonly OutcomeRow[]): AddOutcome[] {
  const all: AddOutcome[] = jobs.map(() => CREATED);
  for (const [place, outcome, id] of rows)
    all[place] = outcome === 'full' ? FULL : { outcome: outcome as 'duplicate', id };
  return all;
}
