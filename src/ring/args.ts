import { CroreError } from '../errors.js';

/** The parsed command line: durations in milliseconds, all defaults filled in. */
export interface Options {
  url: string;
  prefix: string;
  lockName: string;
  expiryMs: number;
  envVar: string;
  continuous: boolean;
  exitCodes: number[];
  quiet: boolean;
  logFile: string;
  timestamps: boolean;
  help: boolean;
  jobs: number;
  restMs: number;
  timeoutMs: number;
  graceMs: number;
  joblog: string;
  maxItems: number;
  stdin: 'inherit' | 'null' | 'item';
  onLost: 'term' | 'warn';
  command: string[];
}

interface Flag {
  readonly short?: string;
  readonly long: string;
  /** Absent for a flag without a value. */
  readonly value?: string;
  readonly set: (options: Options, value: string) => void;
}

const FLAGS: readonly Flag[] = [
  { short: 'u', long: 'redis-url', value: 'URL', set: (o, v) => (o.url = v) },
  { short: 'k', long: 'key-prefix', value: 'PREFIX', set: (o, v) => (o.prefix = v) },
  { short: 'x', long: 'key-expiry', value: 'SECONDS', set: (o, v) => (o.expiryMs = seconds('key-expiry', v, 1)) },
  { short: 'e', long: 'env-var', value: 'NAME', set: (o, v) => (o.envVar = variable(v)) },
  { short: 'c', long: 'continuous', set: (o) => (o.continuous = true) },
  { short: 'i', long: 'exit-codes', value: 'CODE', set: (o, v) => o.exitCodes.push(...v.split(',').map(exitCode)) },
  { short: 'q', long: 'quiet', set: (o) => (o.quiet = true) },
  { short: 'f', long: 'log-file', value: 'FILE', set: (o, v) => (o.logFile = v) },
  { short: 't', long: 'no-log-timestamps', set: (o) => (o.timestamps = false) },
  { short: 'h', long: 'help', set: (o) => (o.help = true) },
  { short: 'j', long: 'jobs', value: 'N', set: (o, v) => (o.jobs = whole('jobs', v, 1, 10_000)) },
  { long: 'rest', value: 'SECONDS', set: (o, v) => (o.restMs = seconds('rest', v, 0)) },
  { long: 'timeout', value: 'SECONDS', set: (o, v) => (o.timeoutMs = seconds('timeout', v, 0.001)) },
  { long: 'grace', value: 'SECONDS', set: (o, v) => (o.graceMs = seconds('grace', v, 0)) },
  { long: 'joblog', value: 'FILE', set: (o, v) => (o.joblog = v) },
  { long: 'max-items', value: 'N', set: (o, v) => (o.maxItems = whole('max-items', v, 1, Number.MAX_SAFE_INTEGER)) },
  { long: 'stdin', value: 'KIND', set: (o, v) => (o.stdin = oneOf('stdin', v, ['inherit', 'null', 'item'])) },
  { long: 'on-lost', value: 'ACTION', set: (o, v) => (o.onLost = oneOf('on-lost', v, ['term', 'warn'])) },
  { long: 'lock-name', value: 'NAME', set: (o, v) => (o.lockName = lockName(v)) },
];

/** Options end at the first positional argument or at `--`, so that the executable keeps its own flags. */
export function parseArgs(argv: readonly string[], env: NodeJS.ProcessEnv): Options {
  const options = defaults(env);
  let at = 0;
  while (at < argv.length && /^-./.test(argv[at]!)) {
    const arg = argv[at++]!;
    if (arg === '--') break;
    const next = (flag: Flag): string => following(flag, argv[at++]);
    if (arg.startsWith('--')) long(options, arg.slice(2), next);
    else short(options, arg.slice(1), next);
  }
  options.command = argv.slice(at);
  if (options.help) return options;
  if (options.command.length === 0) throw bad('no executable was given');
  if (options.exitCodes.length === 0) options.exitCodes = [0];
  return options;
}

function defaults(env: NodeJS.ProcessEnv): Options {
  return {
    url: env.REDIS_URL || 'redis://localhost:6379',
    prefix: '',
    lockName: 'lock',
    expiryMs: 5000,
    envVar: '',
    continuous: false,
    exitCodes: [],
    quiet: false,
    logFile: '',
    timestamps: true,
    help: false,
    jobs: 1,
    restMs: 0,
    timeoutMs: 0,
    graceMs: 2000,
    joblog: '',
    maxItems: 0,
    stdin: 'inherit',
    onLost: 'term',
    command: [],
  };
}

function long(options: Options, text: string, next: (flag: Flag) => string): void {
  const equals = text.indexOf('=');
  const name = equals < 0 ? text : text.slice(0, equals);
  const flag = FLAGS.find((each) => each.long === name);
  if (!flag) throw bad(`unknown option --${name}`);
  if (!flag.value && equals >= 0) throw bad(`option --${name} takes no value`);
  flag.set(options, !flag.value ? '' : equals < 0 ? next(flag) : text.slice(equals + 1));
}

/** `-cq`, `-kwork`, `-k=work`, `-cqk work`: flags may share a dash; the first one with a value takes the rest. */
function short(options: Options, text: string, next: (flag: Flag) => string): void {
  for (let i = 0; i < text.length; i++) {
    const flag = FLAGS.find((each) => each.short === text[i]);
    if (!flag) throw bad(`unknown option -${text[i]}`);
    if (flag.value) {
      const rest = text.slice(i + 1);
      flag.set(options, rest === '' ? next(flag) : rest.replace(/^=/, ''));
      return;
    }
    flag.set(options, '');
  }
}

function following(flag: Flag, value: string | undefined): string {
  if (value === undefined || (/^-./.test(value) && !/^-\d/.test(value))) {
    throw bad(`option --${flag.long} needs a value (${flag.value})`);
  }
  return value;
}

function bad(why: string): CroreError {
  return new CroreError('BAD_OPTION', why);
}

function seconds(name: string, value: string, least: number): number {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) throw bad(`--${name} ${value}: not a number of seconds`);
  // With a larger value, Node's timers would fire immediately.
  if (number < least || number > 2_000_000) throw bad(`--${name} ${value}: must be from ${least} to 2000000 seconds`);
  return number * 1000;
}

function whole(name: string, value: string, least: number, most: number): number {
  const number = Number(value);
  if (/^[+-]?\d+$/.test(value) && number >= least && number <= most) return number;
  throw bad(`--${name} ${value}: must be a whole number of at least ${least}`);
}

function exitCode(value: string): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number <= 255) return number;
  throw bad(`--exit-codes ${value}: must be a code from 0 to 255`);
}

function variable(value: string): string {
  if (value !== '' && !/[=\0]/.test(value)) return value;
  throw bad(`--env-var '${value}': not a name for an environment variable`);
}

function lockName(value: string): string {
  if (value !== '' && value !== 'list') return value;
  throw bad(`--lock-name '${value}': must be a word other than list`);
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value);
  if (!found) throw bad(`--${name} ${value}: must be one of ${allowed.join(', ')}`);
  return found;
}
