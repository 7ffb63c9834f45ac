import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { NewJob } from '../../job/job.js';
import { JsonArg } from '../../store/postgres/connection/arguments.js';
import type { PostgresClient } from '../../store/postgres/connection/client.js';
import { writeJob } from '../../store/postgres/records/new-jobs.js';
import { TransactionCaller } from '../../store/postgres/transactions/caller.js';
import type { TransactionClient } from '../../store/postgres/transactions/connections.js';
import { runnerOf } from '../../store/postgres/transactions/connections.js';
import { MAX_BATCH } from '../../store/store.js';
import { type OutboxAddOptions, type Outgoing, resolveOutgoing } from '../outgoing.js';
import { connectOutbox, OUTBOX_FORMAT } from './connect.js';

/** A payload with the options of its job. */
export interface OutgoingItem extends OutboxAddOptions {
  payload: unknown;
}

export async function openPostgresOutbox(url: string, maxPayload: number): Promise<PostgresOutbox> {
  const { client, identity } = await connectOutbox(url);
  return new PostgresOutbox(client, identity, maxPayload);
}

/** Jobs written in the application's own transactions on PostgreSQL, to be sent by a relay. */
export class PostgresOutbox {
  readonly #caller: TransactionCaller;

  constructor(
    private readonly client: PostgresClient,
    identity: unknown,
    private readonly maxPayload: number,
  ) {
    this.#caller = new TransactionCaller(client, identity, 'outbox');
  }

  /** Writes a job in a transaction of the application: it is sent if and only if that is committed. */
  async addIn(
    connection: TransactionClient,
    queue: string,
    payload: unknown,
    options?: OutboxAddOptions,
  ): Promise<Outgoing> {
    const job = this.#resolve(queue, payload, options);
    await this.#write(connection, queue, [job]);
    return { queue, id: job.id };
  }

  /** The same for many jobs, all or none, in order. */
  async addManyIn(connection: TransactionClient, queue: string, items: readonly OutgoingItem[]): Promise<Outgoing[]> {
    if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', 'addManyIn needs an array of items');
    const jobs = items.map((item: OutgoingItem, i) => {
      if (item === null || typeof item !== 'object')
        throw new CroreError('BAD_OPTION', `addManyIn: item ${i} must be an object with a payload`);
      const { payload, ...options } = item;
      return this.#resolve(queue, payload, options);
    });
    for (let i = 0; i < jobs.length; i += MAX_BATCH) await this.#write(connection, queue, jobs.slice(i, i + MAX_BATCH));
    return jobs.map(({ id }) => ({ queue, id }));
  }

  /** How many committed jobs wait to be sent, in total or for one queue. */
  async count(queue?: string): Promise<number> {
    const where = queue === undefined ? '' : ' where queue = $1';
    const args = queue === undefined ? [] : [queue];
    const [row] = await this.client.read(`select count(*) as n from crore.outbox_rows${where}`, args);
    return row!.n as number;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  close(): Promise<void> {
    return this.client.close();
  }

  #resolve(queue: string, payload: unknown, options: OutboxAddOptions | undefined): NewJob {
    const limits = { now: Date.now(), maxPayload: this.maxPayload };
    return resolveOutgoing(checkName(queue, 'queue name'), payload, options, limits);
  }

  async #write(connection: unknown, queue: string, jobs: readonly NewJob[]): Promise<void> {
    runnerOf(connection);
    await this.#caller.call(connection, 'write_in', (store) => {
      const call = { store, format: OUTBOX_FORMAT, queue, jobs: jobs.map(writeJob) };
      return new JsonArg(call).text!;
    });
  }
}
