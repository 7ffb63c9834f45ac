import type { Tables } from '../tables.js';

/** Bytes of log, and of the history of attempts, kept per job. */
const LIMIT = 65_536;

/** Appends to the log of a job or to the history of its attempts; the beginning is cut off when it grows too long. */
export function appendNote(tables: Tables, n: number, column: 'log' | 'attempts', text: string): void {
  tables
    .sql(
      `INSERT INTO notes (n, ${column}) VALUES (?, ?) ON CONFLICT (n) DO UPDATE
       SET ${column} = substr(coalesce(${column}, '') || excluded.${column}, -${LIMIT})`,
    )
    .run(n, text);
}

export function writeProgress(tables: Tables, n: number, progress: string): void {
  tables
    .sql('INSERT INTO notes (n, progress) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET progress = excluded.progress')
    .run(n, progress);
}
