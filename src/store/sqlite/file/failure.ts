import { CroreError, type ErrorCode } from '../../../errors.js';

const CODES: Record<number, ErrorCode> = {
  5: 'STORE_BUSY',
  6: 'STORE_BUSY',
  8: 'STORE_READONLY',
  10: 'STORE_UNREACHABLE',
  11: 'STORE_CORRUPT',
  13: 'STORE_FULL',
  14: 'STORE_UNREACHABLE',
  26: 'STORE_CORRUPT',
};

/** The names that some drivers use for result codes. */
const NAMES: Record<string, number> = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_NOTADB: 26,
};

function primaryCode(error: unknown): number {
  const { errcode, sqliteCode, code } = error as { errcode?: number; sqliteCode?: number; code?: unknown };
  const named = typeof code === 'string' ? NAMES[code.split('_', 2).join('_')] : undefined;
  return ((sqliteCode ?? errcode ?? named ?? 0) as number) & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === 5 || code === 6;
}

export function isFull(error: unknown): boolean {
  return primaryCode(error) === 13;
}

/** Translates a driver's error; returns errors that do not come from the database unchanged. */
export function translate(error: unknown, shown: string): Error {
  if (error instanceof CroreError) return error;
  const code = CODES[primaryCode(error)];
  const { message } = error as Error;
  if (code) return new CroreError(code, `${shown}: ${message}`, { cause: error });
  return error as Error;
}
