/** Arguments of functions in the database. Anything else than these is passed as it is, and its type is that of the function's parameter. */
export type Arg = string | number | boolean | null | Uint8Array | JsonArg;

/** A value passed as JSON; null is that of SQL. */
export class JsonArg {
  readonly text: string | null;

  constructor(value: unknown) {
    if (value === null) {
      this.text = null;
      return;
    }
    const text = JSON.stringify(value);
    this.text = UNSTORABLE.test(text)
      ? JSON.stringify(value, (_key, part) => (typeof part === 'string' ? storable(part) : part))
      : text;
  }
}

/** What PostgreSQL cannot store as text: a NUL, or half of a surrogate pair. It may also be an escaped escape, and then nothing is changed. */
const UNSTORABLE = /\\u0000|\\ud[89a-f]/i;

export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

export function json(value: unknown): JsonArg {
  return new JsonArg(value);
}

/** The text form of an array of texts. */
export function texts(values: readonly (string | undefined)[]): string {
  return `{${values.map((value) => (value === undefined ? 'NULL' : `"${storable(value).replace(/[\\"]/g, '\\$&')}"`)).join(',')}}`;
}

/** The text form of an array of bytes. */
export function byteArrays(values: readonly Buffer[]): string {
  return `{${values.map((value) => `"\\\\x${value.toString('hex')}"`).join(',')}}`;
}

export function numbers(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}

export function flags(values: readonly boolean[]): string {
  return `{${values.map((value) => (value ? 't' : 'f')).join(',')}}`;
}

/** Reads the text form of an array of booleans. */
export function readFlags(text: unknown): boolean[] {
  const inner = String(text).slice(1, -1);
  return inner === '' ? [] : inner.split(',').map((flag) => flag === 't');
}
