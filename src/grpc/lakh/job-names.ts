import { checkName } from '../../engine/input/check.js';
import { CallError } from '../status.js';

/** The names in all `job_names` entries of a call's headers (name, value, name, value …), without duplicates. */
export function jobNames(headers: readonly string[], most: number): Set<string> {
  const entries = headers.filter((_value, i) => i % 2 === 1 && headers[i - 1] === 'job_names');
  // Header values arrive as Latin-1, but names may be any UTF-8.
  const text = Buffer.from(entries.join(';'), 'latin1').toString('utf8');
  const names = new Set(text.split(';').filter((name) => name !== ''));
  if (names.size === 0)
    throw new CallError('INVALID_ARGUMENT', "metadata entry 'job_names' is missing or empty: names joined by ';'");
  if (names.size > most)
    throw new CallError('INVALID_ARGUMENT', `'job_names' has ${names.size} names, the limit is ${most}`);
  for (const name of names) checkName(name, 'job name');
  return names;
}
