import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { NewJob } from '../../job/job.js';
import { encodeSpec } from '../../job/spec.js';
import type { Connection } from '../../store/sqlite/file/external-connection.js';
import { translate } from '../../store/sqlite/file/failure.js';
import { type OutboxAddOptions, type Outgoing, resolveOutgoing } from '../outgoing.js';
import { OutboxTable } from './outbox-table.js';

const INSERT = `INSERT INTO crore_outbox (queue, id, priority, created, at, spec, bytes, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/** The outbox tables of a file, created if missing. */
export function prepareLedger(connection: Connection, what: string): OutboxTable {
  const ledger = new OutboxTable(connection, what);
  try {
    if (ledger.db.inTransaction) {
      throw new CroreError(
        'BAD_OPTION',
        `${what}: the connection is inside a transaction; call it before the transaction begins`,
      );
    }
    ledger.prepare();
    return ledger;
  } catch (error) {
    throw translate(error, what);
  }
}

/** Jobs written in the application's own transactions, to be sent by a relay. */
export class Outbox {
  readonly #ledger: OutboxTable;
  readonly #maxPayload: number;

  constructor(ledger: OutboxTable, maxPayload: number) {
    this.#ledger = ledger;
    this.#maxPayload = maxPayload;
  }

  /** Writes a job together with the application's own changes: it is sent if and only if they are committed. */
  add(queue: string, payload: unknown, options?: OutboxAddOptions): Outgoing {
    const now = Date.now();
    const job = resolveOutgoing(checkName(queue, 'queue name'), payload, options, {
      now,
      maxPayload: this.#maxPayload,
    });
    try {
      this.#write(queue, job, now);
    } catch (error) {
      throw translate(error, `outbox of queue '${queue}'`);
    }
    return { queue, id: job.id };
  }

  /** How many jobs wait to be sent, in total or for one queue. */
  count(queue?: string): number {
    const where = queue === undefined ? '' : 'WHERE queue = ?';
    const row = this.#ledger.sql(`SELECT count(*) AS n FROM crore_outbox ${where}`).get(...(queue ? [queue] : []));
    return row!.n as number;
  }

  #write(queue: string, { id, payload, priority, delay, at, spec }: NewJob, now: number): void {
    this.#ledger.sql('INSERT OR IGNORE INTO crore_outbox_queues (queue) VALUES (?)').run(queue);
    const time = at ?? (delay === undefined ? null : now + delay);
    const bytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
    this.#ledger.sql(INSERT).run(queue, id, priority, now, time, encodeSpec(spec), bytes, payload);
  }
}
