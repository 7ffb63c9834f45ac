import { existsSync, readFileSync } from 'node:fs';
import { parse, TomlError } from 'smol-toml';
import { checkInteger } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import { milliseconds } from '../../job/duration.js';
import { redactUrl } from '../../redact.js';
import { DEFAULT_URL } from '../../store/url.js';

/** A setting. It has the same name everywhere: `max_retry` in the file, `CRORE_MAX_RETRY`, `--max-retry`. */
interface Setting {
  key: string;
  /** The flag's argument, for the help; absent for a switch. */
  takes?: string;
  help: string;
  fallback: string | number | boolean | undefined;
  read: (value: unknown, what: string) => string | number | boolean | undefined;
  /** Must not be printed. */
  secret?: boolean;
}

const MB = 1_048_576;

export const SETTINGS = [
  { key: 'store', takes: 'url', help: 'sqlite:FILE, redis://…', fallback: DEFAULT_URL, read: text },
  {
    key: 'addr',
    takes: 'host:port',
    help: 'gRPC address; localhost includes [::1]',
    fallback: 'localhost:50051',
    read: text,
  },
  {
    key: 'http',
    takes: 'host:port',
    help: "HTTP/JSON address, or 'off'",
    fallback: 'localhost:5380',
    read: text,
  },
  {
    key: 'max_retry',
    takes: 'n',
    help: 'maximum attempts of a Lakh job',
    fallback: 30,
    read: whole(1, 1_000_000),
  },
  { key: 'retry_base', takes: 'time', help: 'minimum delay before a Lakh retry', fallback: 15_000, read: time },
  { key: 'retry_jitter', takes: 'time', help: 'random extra delay per attempt', fallback: 30_000, read: time },
  { key: 'retry_cap', takes: 'time', help: 'maximum delay before a Lakh retry', fallback: 2_592_000_000, read: time },
  { key: 'tls_cert', takes: 'file', help: 'TLS certificate (PEM)', fallback: undefined, read: text },
  { key: 'tls_key', takes: 'file', help: 'TLS key (PEM)', fallback: undefined, read: text },
  {
    key: 'client_ca',
    takes: 'file',
    help: 'require client certificates of this CA (PEM)',
    fallback: undefined,
    read: text,
  },
  { key: 'token', takes: 'text', help: 'bearer token', fallback: undefined, read: text, secret: true },
  { key: 'token_file', takes: 'file', help: 'file with the bearer token', fallback: undefined, read: text },
  {
    key: 'read_token',
    takes: 'text',
    help: 'a second token, which allows looking only',
    fallback: undefined,
    read: text,
    secret: true,
  },
  { key: 'read_token_file', takes: 'file', help: 'file with that token', fallback: undefined, read: text },
  {
    key: 'dashboard',
    takes: 'mode',
    help: 'what the dashboard on the HTTP port allows: write, read or off',
    fallback: 'write',
    read: oneOf('write', 'read', 'off'),
  },
  { key: 'insecure', help: 'serve other machines without TLS and a token', fallback: false, read: flag },
  {
    key: 'max_message',
    takes: 'bytes',
    help: 'maximum size of a message',
    fallback: 4 * MB,
    read: whole(1_024, 64 * MB),
  },
  { key: 'max_metadata', takes: 'bytes', help: 'maximum size of metadata', fallback: 65_536, read: whole(4_096, MB) },
  {
    key: 'max_streams',
    takes: 'n',
    help: 'maximum open calls per connection',
    fallback: 1_000,
    read: whole(1, 100_000),
  },
  { key: 'max_connections', takes: 'n', help: 'maximum connections', fallback: 10_000, read: whole(1, 1_000_000) },
  {
    key: 'max_buffered',
    takes: 'bytes',
    help: 'total size of incomplete messages; a quarter per connection',
    fallback: 128 * MB,
    read: whole(MB, 65_536 * MB),
  },
  { key: 'max_names', takes: 'n', help: 'maximum job names per call', fallback: 1_000, read: whole(1, 100_000) },
  {
    key: 'lease',
    takes: 'time',
    help: 'a worker without a heartbeat for this long is dead',
    fallback: 10_000,
    read: time,
  },
  { key: 'sweep', takes: 'time', help: 'how often queues are swept', fallback: 1_000, read: time },
  { key: 'max_crashes', takes: 'n', help: 'worker crashes before a job is dead', fallback: 3, read: whole(1, 1_000) },
  { key: 'keepalive', takes: 'time', help: 'time between pings', fallback: 20_000, read: time },
  { key: 'keepalive_timeout', takes: 'time', help: 'timeout of a ping', fallback: 10_000, read: time },
  {
    key: 'handshake_timeout',
    takes: 'time',
    help: 'time limit for TLS handshake and request headers',
    fallback: 10_000,
    read: time,
  },
  { key: 'stall', takes: 'time', help: 'how long a Lakh worker may leave jobs unread', fallback: 5_000, read: time },
  { key: 'grace', takes: 'time', help: 'how long a shutdown waits for running jobs', fallback: 10_000, read: time },
  { key: 'timeout', takes: 'time', help: 'timeout of calls to the store', fallback: 10_000, read: time },
  {
    key: 'ready_max_age',
    takes: 'time',
    help: 'not ready while a queue with workers has a job due for longer; 0: any age',
    fallback: 0,
    read: time,
  },
  {
    key: 'log_level',
    takes: 'level',
    help: 'debug, info, job, warn, error or silent',
    fallback: 'info',
    read: oneOf('trace', 'debug', 'info', 'job', 'warn', 'error', 'silent'),
  },
  {
    key: 'log_format',
    takes: 'format',
    help: 'text, json, or auto: text on a terminal',
    fallback: 'auto',
    read: oneOf('auto', 'text', 'json'),
  },
] as const satisfies readonly Setting[];

export type Key = (typeof SETTINGS)[number]['key'];
/** The values that `fallback` or `read` can return. */
export type Values = Record<Key, string | number | boolean | undefined>;

export interface ResolvedSettings {
  values: Values;
  /** Where each value came from: `flag`, an environment variable, a file, or `default`. */
  origins: Record<Key, string>;
}

/**
 * Flags override the environment, which overrides the file, which overrides the defaults; each value is checked at its origin.
 */
export function resolveSettings(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  file: string | undefined,
): ResolvedSettings {
  const path = file ?? env.CRORE_CONFIG ?? (existsSync('crore.toml') ? 'crore.toml' : undefined);
  const written = path === undefined ? {} : readFile(path);
  const values = {} as Values;
  const origins = {} as Record<Key, string>;
  for (const setting of SETTINGS as readonly Setting[]) {
    const key = setting.key as Key;
    const variable = `CRORE_${key.toUpperCase()}`;
    const flag = flags[camel(key)];
    const found: [unknown, string] =
      flag !== undefined
        ? [flag, 'flag']
        : env[variable] !== undefined && env[variable] !== ''
          ? [env[variable], variable]
          : written[key] !== undefined
            ? [written[key], path!]
            : [setting.fallback, 'default'];
    const [value, origin] = found;
    values[key] = origin === 'default' ? setting.fallback : setting.read(value, nameIn(origin, key));
    origins[key] = origin;
  }
  return { values, origins };
}

/** Formats a value for display, without passwords and tokens. */
export function show(key: Key, value: Values[Key]): string {
  const setting = SETTINGS.find((one) => one.key === key) as Setting;
  if (value === undefined) return '';
  if (setting.secret) return '***';
  return key === 'store' ? redactUrl(String(value)) : String(value);
}

export function camel(key: string): string {
  return key.replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase());
}

function nameIn(origin: string, key: string): string {
  if (origin === 'flag') return `--${key.replaceAll('_', '-')}`;
  return origin.startsWith('CRORE_') ? `$${origin}` : `${origin}: ${key}`;
}

function readFile(path: string): Record<string, unknown> {
  let written: Record<string, unknown>;
  try {
    written = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new CroreError('BAD_OPTION', `config ${path}${whyUnread(error as Error)}`);
  }
  const known: readonly string[] = SETTINGS.map(({ key }) => key);
  for (const key of Object.keys(written)) {
    if (!known.includes(key))
      throw new CroreError('BAD_OPTION', `config ${path}: unknown key '${key}' (known: ${known.join(', ')})`);
  }
  return written;
}

/** The place and the reason, without the drawing of the place that follows in the parser's message. */
function whyUnread(error: Error): string {
  const place = error instanceof TomlError ? `, line ${error.line}, column ${error.column}` : '';
  return `${place}: ${error.message.split('\n')[0]!.replace(/^Invalid TOML document: /, '')}`;
}

function text(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '')
    throw new CroreError('BAD_OPTION', `${what} must be a non-empty string`);
  return value;
}

function time(value: unknown, what: string): number {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return milliseconds(number as string | number, what);
}

function flag(value: unknown, what: string): boolean {
  if (value === true || value === 'true' || value === '1') return true;
  if (value === false || value === 'false' || value === '0') return false;
  throw new CroreError('BAD_OPTION', `${what} must be true or false`);
}

function whole(low: number, high: number): Setting['read'] {
  return (value, what) => {
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    return checkInteger(typeof number === 'bigint' ? Number(number) : number, what, low, high);
  };
}

function oneOf(...known: string[]): Setting['read'] {
  return (value, what) => {
    if (!known.includes(value as string))
      throw new CroreError('BAD_OPTION', `${what} must be one of ${known.join(', ')}, not '${String(value)}'`);
    return value as string;
  };
}
