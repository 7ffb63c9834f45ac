import type { NewJob } from '../../job/job.js';
import type { AddOutcome, Mark } from '../store.js';
import { add } from './add.js';
import type { Tables } from './table.js';

/** Adds as one step of an ordered source, if that stands where the caller believes. */
export function carry(
  tables: Tables,
  queue: number,
  jobs: readonly NewJob[],
  { source, from, to }: Mark,
  now: number,
): AddOutcome[] | 'stale' {
  if (carried(tables, queue, source) !== from) return 'stale';
  const outcomes = add(tables, queue, jobs, {}, now);
  tables.sql('INSERT OR REPLACE INTO marks (queue, source, position) VALUES (?, ?, ?)').run(queue, source, to);
  return outcomes;
}

export function carried(tables: Tables, queue: number, source: string): string {
  const row = tables.sql('SELECT position FROM marks WHERE queue = ? AND source = ?').get(queue, source);
  return (row?.position as string | undefined) ?? '';
}
