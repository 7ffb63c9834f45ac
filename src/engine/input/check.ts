import { CroreError } from '../../errors.js';

/** Validates arguments from callers. Each error names the offending argument, and is thrown before anything has happened. */

const LONGEST_NAME = 512;

/** A queue name, job id, worker id or unique key. */
export function checkName(name: unknown, what: string): string {
  if (typeof name !== 'string') throw new CroreError('BAD_NAME', `${what} must be a string, not ${describe(name)}`);
  if (name === '') throw new CroreError('BAD_NAME', `${what} must not be empty`);
  if (name.includes('\0'))
    throw new CroreError('BAD_NAME', `${what} ${JSON.stringify(name.slice(0, 80))} contains a NUL character`);
  if (name.length > LONGEST_NAME) {
    throw new CroreError('BAD_NAME', `${what} '${name.slice(0, 40)}…' is longer than ${LONGEST_NAME} characters`);
  }
  if (!name.isWellFormed())
    throw new CroreError('BAD_NAME', `${what} ${JSON.stringify(name)} is not well-formed Unicode`);
  return name;
}

export function checkOptions(options: unknown, known: readonly string[], what: string): void {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new CroreError('BAD_OPTION', `${what} must be an object, not ${describe(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key))
      throw new CroreError('BAD_OPTION', `${what}: unknown option '${key}' (known: ${known.join(', ')})`);
  }
}

export function checkInteger(value: unknown, what: string, low: number, high = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < low || value > high) {
    const range = high === Number.MAX_SAFE_INTEGER ? `${low} or more` : `${low} to ${high}`;
    throw new CroreError('BAD_OPTION', `${what} must be a whole number, ${range}, not ${describe(value)}`);
  }
  return value;
}

export function checkOneOf<T extends string>(value: unknown, what: string, known: readonly T[]): T {
  if (!known.includes(value as T)) {
    throw new CroreError('BAD_OPTION', `${what} must be one of ${known.join(', ')}, not ${describe(value)}`);
  }
  return value as T;
}

/** Formats a value for an error message: short, and without printing a secret payload. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`;
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
