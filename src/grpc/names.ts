import type { IncomingHttpHeaders } from 'node:http2';
import { checkName } from '../engine/check.js';
import { Refusal } from './status.js';

/** The names in `job_names`, each once. */
export function jobNames(headers: IncomingHttpHeaders, most: number): Set<string> {
  const raw = headers.job_names;
  // Header values arrive as Latin-1: names may be any UTF-8.
  const text = Buffer.from(String(Array.isArray(raw) ? raw.join(';') : (raw ?? '')), 'latin1').toString('utf8');
  const names = new Set(text.split(';').filter((name) => name !== ''));
  if (names.size === 0)
    throw new Refusal('INVALID_ARGUMENT', "metadata entry 'job_names' is missing or empty: names joined by ';'");
  if (names.size > most)
    throw new Refusal('INVALID_ARGUMENT', `'job_names' has ${names.size} names, the limit is ${most}`);
  for (const name of names) checkName(name, 'job name');
  return names;
}
