import { type Logger, pino } from 'pino';
import { printable } from '../output.js';

/** Between info and warn: failed attempts and dead jobs, which are news about jobs, not about the server. */
const CUSTOM_LEVELS = { job: 35 };
export type ServerLog = Logger<'job'>;

const NAMES: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  35: 'job',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};
/** Fields of every line that are of no use to a person who watches. */
const HIDDEN = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

/** The log of the server on standard error: lines for people on a terminal, JSON otherwise, unless the format is given. */
export function serverLog(level: string, format: 'auto' | 'text' | 'json'): ServerLog {
  const destination = pino.destination({ dest: 2, sync: true });
  const isText = format === 'text' || (format === 'auto' && process.stderr.isTTY === true);
  const target = isText ? { write: (line: string) => void destination.write(humanLine(line)) } : destination;
  return pino({ level, customLevels: CUSTOM_LEVELS }, target);
}

/** `06:31:02 warn  message  key=value` */
export function humanLine(line: string): string {
  const fields = JSON.parse(line) as Record<string, unknown> & { level: number; time: number; msg?: string };
  const time = new Date(fields.time).toTimeString().slice(0, 8);
  const error = fields.err as { message?: string; code?: string } | undefined;
  const rest = Object.entries(fields)
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const parts = [fields.msg ?? '', error?.message ?? '', ...rest].filter((part) => part !== '');
  return `${time} ${(NAMES[fields.level] ?? String(fields.level)).padEnd(5)} ${printable(parts.join('  '), 2_000)}\n`;
}
