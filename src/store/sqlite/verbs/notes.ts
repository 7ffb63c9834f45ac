import { progressLine, withTimes } from '../../../job/timed-lines.js';
import type { Tables } from '../tables.js';

/** Bytes of log, and of the history of attempts, kept per job. */
const LIMIT = 65_536;
/** Bytes kept of the last values of progress. */
const STEPS_LIMIT = 4_096;

/** Appends to the log of a job or to the history of its attempts; the beginning is cut off when it grows too long. */
export function appendNote(tables: Tables, n: number, column: 'log' | 'attempts', text: string): void {
  tables
    .sql(
      `INSERT INTO notes (n, ${column}) VALUES (?, ?) ON CONFLICT (n) DO UPDATE
       SET ${column} = substr(coalesce(${column}, '') || excluded.${column}, -${LIMIT})`,
    )
    .run(n, text);
}

/** The value alone, and with its time as the last of a few. */
export function writeProgress(tables: Tables, n: number, progress: string, now: number): void {
  tables
    .sql(
      `INSERT INTO notes (n, progress, steps) VALUES (?, ?, ?) ON CONFLICT (n) DO UPDATE
       SET progress = excluded.progress, steps = substr(coalesce(steps, '') || excluded.steps, -${STEPS_LIMIT})`,
    )
    .run(n, progress, withTimes(progressLine(progress), now));
}

/** Children and batch counts are replaced as a whole. */
export function writeNote(tables: Tables, n: number, column: 'children' | 'batch', text: string): void {
  tables
    .sql(`INSERT INTO notes (n, ${column}) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET ${column} = excluded.${column}`)
    .run(n, text);
}

export function readNote(tables: Tables, n: number, column: 'children' | 'batch'): string | undefined {
  return (tables.sql(`SELECT ${column} AS note FROM notes WHERE n = ?`).get(n)?.note as string | null) ?? undefined;
}
