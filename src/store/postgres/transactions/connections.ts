import { CroreError } from '../../../errors.js';
import type { Row } from '../connection/client.js';

/**
 * A transaction of the application on PostgreSQL: a client of `pg`, a transaction of `postgres`, drizzle, knex or prisma, or any object with a
 * method `query` that behaves like that of `pg`.
 */
export type TransactionClient =
  | { query(text: string, values: string[]): PromiseLike<{ rows: unknown[] }> }
  | { unsafe(text: string, values: string[]): PromiseLike<readonly unknown[]> }
  | { raw(text: string, values: string[]): PromiseLike<unknown> }
  | { execute(text: string): PromiseLike<unknown> }
  | { $queryRawUnsafe(text: string, ...values: string[]): PromiseLike<unknown> };

/** Runs one statement with at most one parameter, $1. */
export type Run = (text: string, value?: string) => PromiseLike<unknown>;

type Methods = Partial<Record<'query' | 'unsafe' | 'raw' | 'execute' | '$queryRawUnsafe', unknown>>;
type Method = (text: string, ...values: unknown[]) => PromiseLike<unknown>;

/** What each library calls its way to run plain SQL. */
const CALLS: readonly [name: keyof Methods, call: (method: Method) => Run][] = [
  ['unsafe', (unsafe) => (text, value) => unsafe(text, value === undefined ? [] : [value])],
  ['$queryRawUnsafe', (raw) => (text, value) => (value === undefined ? raw(text) : raw(text, value))],
  ['query', (query) => (text, value) => query(text, value === undefined ? [] : [value])],
  // knex counts question marks, and drizzle takes values only in objects of its own.
  ['raw', (raw) => (text, value) => (value === undefined ? raw(text) : raw(text.replace('$1', '?'), [value]))],
  [
    'execute',
    (execute) => (text, value) => execute(value === undefined ? text : text.replace('$1', () => quoted(value))),
  ],
];

export function runnerOf(connection: unknown): Run {
  const isObject = (typeof connection === 'object' && connection !== null) || typeof connection === 'function';
  const methods = (isObject ? connection : {}) as Methods;
  for (const [name, call] of CALLS) {
    const method = methods[name];
    if (typeof method === 'function') return call((method as Method).bind(connection));
  }
  const known =
    'a client of pg, a transaction of postgres, drizzle, knex or prisma, or an object with query(text, values)';
  throw new CroreError('BAD_OPTION', `addIn needs a transaction on PostgreSQL: ${known}`);
}

/** The one value of the one row of an answer, whatever the library makes of rows and column names. */
export function onlyValue(answer: unknown): unknown {
  const rows = Array.isArray(answer) ? answer : ((answer as { rows?: unknown[] } | null)?.rows ?? []);
  const row = rows[0] as Row | unknown[] | undefined;
  return row && Object.values(row)[0];
}

/** The SQLSTATE and message of what a library threw: some wrap the error of their driver. */
export function serverError(error: unknown): { code: string; message: string } {
  const message = error instanceof Error ? error.message : String(error);
  let found = error;
  for (let depth = 0; depth < 6 && found !== null && typeof found === 'object'; depth++) {
    const { code, originalCode, message: inner, originalMessage, cause, meta, driverAdapterError } = found as Wrapped;
    const state = [code, originalCode].find(
      (one) => typeof one === 'string' && /^[0-9A-Z]{5}$/.test(one) && !/^P20/.test(one),
    );
    if (state !== undefined) return { code: state as string, message: String(originalMessage ?? inner ?? message) };
    found = cause ?? driverAdapterError ?? meta;
  }
  return { code: '', message };
}

type Wrapped = Record<
  'code' | 'originalCode' | 'message' | 'originalMessage' | 'cause' | 'meta' | 'driverAdapterError',
  unknown
>;

/** Valid whatever `standard_conforming_strings` says. */
function quoted(text: string): string {
  return `E'${text.replace(/[\\']/g, '\\$&')}'`;
}
