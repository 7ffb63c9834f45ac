import { checkInteger, describe } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { milliseconds } from '../job/duration.js';

/** Parses option values from a command line; each error names the option. Undefined stays undefined. */

export function whole(text: string | undefined, what: string, low: number, high?: number): number | undefined {
  if (text === undefined) return undefined;
  return checkInteger(/^[+-]?\d+$/.test(text) ? Number(text) : text, what, low, high);
}

export function duration(text: string | undefined, what: string): number | undefined {
  return text === undefined ? undefined : milliseconds(text, what);
}

const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?$/i;

/** A time such as `2026-12-24T18:00Z`; without a zone it is local time. */
export function time(text: string | undefined, what: string): Date | undefined {
  if (text === undefined) return undefined;
  const moment = new Date(ISO.test(text) ? text : Number.NaN);
  if (Number.isNaN(moment.getTime())) {
    throw new CroreError('BAD_OPTION', `${what} must be an ISO time such as 2026-12-24T18:00Z, not ${describe(text)}`);
  }
  return moment;
}

/** Refuses options that contradict each other. */
export function notBoth(options: object, ...names: string[]): void {
  const given = names.filter((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (given.length > 1) {
    throw new CroreError('BAD_OPTION', `give --${given[0]} or --${given[1]}, not both`);
  }
}
