import type { Body } from '../../job/job.js';
import type { PostgresClient, Row } from '../../store/postgres/connection/client.js';
import { translate } from '../../store/postgres/connection/failure.js';
import { listenerOptions } from '../../store/postgres/connection/options.js';
import { Signals } from '../../store/postgres/connection/signals.js';
import { type Batch, type OutboxSource, toJob } from '../source.js';
import { connectOutbox, TIMEOUT } from './connect.js';

/** Notifications of an outbox are not about a queue: a relay looks at all. */
const ANY_QUEUE = '';

export async function openPostgresSource(url: string): Promise<OutboxSource> {
  const { client, names, pooled, parsed } = await connectOutbox(url);
  return new PostgresSource(client, new Signals(listenerOptions(parsed, TIMEOUT, pooled), names.channel));
}

/**
 * The outbox in a schema on PostgreSQL: see sql/. A batch is remembered before it is sent, with its rows, because numbers of rows say nothing about
 * which of them will still be committed.
 */
class PostgresSource implements OutboxSource {
  constructor(
    private readonly client: PostgresClient,
    private readonly signals: Signals,
  ) {}

  async nextQueue(after: string): Promise<string | undefined> {
    const [row] = await this.client.read(
      'select queue from crore.outbox_rows where queue > $1 order by queue limit 1',
      [after],
    );
    return row?.queue as string | undefined;
  }

  async batch(queue: string, most: { rows: number; bytes: number }): Promise<Batch | undefined> {
    const rows = await this.client.rows('take_batch', [queue, most.rows, most.bytes]);
    const [first] = rows;
    if (!first) return undefined;
    const jobs = rows.map((row) => toJob(readRow(row), row.waited as number));
    return { source: first.source as string, from: first.from as string, to: first.to as string, jobs };
  }

  async confirm(queue: string, { source, to }: Batch): Promise<undefined> {
    await this.client.value('confirm_batch', [queue, source, to]);
    return undefined;
  }

  async compare(queue: string, { source, from }: Batch, theirs: string): Promise<boolean> {
    return (await this.client.value('compare', [queue, source, from, theirs])) === true;
  }

  watch(notify: () => void): () => void {
    return this.signals.subscribe(ANY_QUEUE, notify);
  }

  translate(error: unknown): Error {
    return translate(error, 'outbox');
  }

  async close(): Promise<void> {
    await this.signals.close();
    await this.client.close();
  }
}

function readRow({ id, body, bytes, priority, at, spec }: Row) {
  return {
    id: id as string,
    payload: (body ?? bytes) as Body,
    priority: priority as number,
    at: at as number | null,
    spec: spec as string,
  };
}
