import type { NewJob } from '../../../job/job.js';
import type { AddOutcome, SourceStep } from '../../store.js';
import type { Tables } from '../tables.js';
import { add } from './add.js';

/** Adds jobs as one step of an ordered source, if it is at the position that the caller expects. */
export function addFromSource(
  tables: Tables,
  queue: number,
  jobs: readonly NewJob[],
  { source, from, to }: SourceStep,
  now: number,
): AddOutcome[] | 'stale' {
  if (sourcePosition(tables, queue, source) !== from) return 'stale';
  const outcomes = add(tables, queue, jobs, {}, now);
  tables.sql('INSERT OR REPLACE INTO marks (queue, source, position) VALUES (?, ?, ?)').run(queue, source, to);
  return outcomes;
}

export function sourcePosition(tables: Tables, queue: number, source: string): string {
  const row = tables.sql('SELECT position FROM marks WHERE queue = ? AND source = ?').get(queue, source);
  return (row?.position as string | undefined) ?? '';
}
