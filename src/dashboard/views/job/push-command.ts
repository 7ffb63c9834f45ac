import { isUtf8 } from 'node:buffer';
import type { Job } from '../../../job/job.js';
import { DEFAULT_SPEC, MOST_ATTEMPTS } from '../../../job/spec.js';
import { quote } from '../../../process/shell-quote.js';

/** A payload longer than this does not fit on a command line. */
const MOST = 100_000;

/** A command line that adds the same job again; empty if its payload cannot stand on one. */
export function pushCommand({ queue, payload, priority, spec }: Job): string {
  const text = argumentOf(payload);
  if (text === undefined) return '';
  const options = [
    ...(priority === 0 ? [] : ['--priority', String(priority)]),
    ...(spec.group === undefined ? [] : ['--group', spec.group]),
    ...(spec.attempts === DEFAULT_SPEC.attempts || spec.attempts >= MOST_ATTEMPTS
      ? []
      : ['--attempts', String(spec.attempts)]),
    ...(spec.retryFor === undefined ? [] : ['--retry-for', `${spec.retryFor}ms`]),
    ...(spec.reservation === 0 ? [] : ['--reserve', `${spec.reservation}ms`]),
    ...(spec.unique ? ['--unique', spec.unique.key] : []),
    ...Object.entries(spec.headers ?? {}).flatMap(([name, value]) => ['--header', `${name}=${value}`]),
  ];
  return ['crore', 'push', ...options, ...text.options, '--', queue, text.payload].map(quote).join(' ');
}

function argumentOf(payload: Job['payload']): { options: string[]; payload: string } | undefined {
  if (payload.length > MOST) return undefined;
  if (typeof payload !== 'string')
    return isUtf8(payload) && !payload.includes(0)
      ? { options: ['--raw'], payload: Buffer.from(payload).toString() }
      : undefined;
  const value: unknown = payload === '' ? null : JSON.parse(payload);
  if (typeof value !== 'string') return { options: [], payload };
  return value.includes('\0') ? undefined : { options: ['--text'], payload: value };
}
