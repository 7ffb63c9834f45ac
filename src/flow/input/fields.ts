import { type BackoffOptions, resolveBackoff } from '../../engine/input/options.js';
import { CroreError } from '../../errors.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import { badFlow, type Place } from '../graph/graph-builder.js';
import { DEFAULT_OPTIONS, type NeedPolicy, type NodeOptions, type NodeSpec, type Work } from '../graph/node-spec.js';

/** The keys of a node in a file, and of the options in TypeScript. */
export const OPTION_KEYS = [
  'needs',
  'map',
  'retries',
  'backoff',
  'timeout',
  'priority',
  'cpu',
  'tokens',
  'env',
  'cwd',
  'inputs',
  'outputs',
  'cache',
] as const;
const NODE_KEYS = ['run', 'queue', 'payload', ...OPTION_KEYS];

export type Fields = Record<string, unknown>;

export const isRecord = (value: unknown): value is Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Reads a node of a file. */
export function readNode(id: string, value: unknown, cached: boolean, place: Place): NodeSpec {
  if (!isRecord(value)) throw badFlow(place, `node '${id}' must be a map with 'run' or 'queue'`);
  checkKeys(value, NODE_KEYS, `node '${id}'`, place);
  return { work: readWork(id, value, place), ...readOptions(id, value, cached, place) };
}

export function checkKeys(value: Fields, known: readonly string[], what: string, place: Place): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw badFlow(place, `${what}: unknown key '${unknown}' (known: ${known.join(', ')})`);
}

function readWork(id: string, { run, queue, payload }: Fields, place: Place): Work {
  if (run !== undefined && queue !== undefined) throw badFlow(place, `node '${id}' has both 'run' and 'queue'`);
  if (queue !== undefined) {
    if (typeof queue !== 'string' || queue === '') throw badFlow(place, `node '${id}': queue must be a name`);
    return { kind: 'queue', queue, payload: payload ?? null };
  }
  if (payload !== undefined) throw badFlow(place, `node '${id}' has a payload but no queue`);
  const list = Array.isArray(run) && run.length > 0 && run.every((part) => typeof part === 'string') && run[0] !== '';
  if (list) return { kind: 'shell', run: run as string[] };
  if (typeof run !== 'string' || run.trim() === '')
    throw badFlow(place, `node '${id}' has no command: 'run' must be a string or a list of strings`);
  if (run.includes('\0')) throw badFlow(place, `node '${id}': the command contains a NUL`);
  return { kind: 'shell', run };
}

/** Validates options from a file or a program and fills in defaults. */
export function readOptions(
  id: string,
  value: Fields,
  cached: boolean,
  place: Place,
): { options: NodeOptions; map?: string } {
  const what = (key: string) => `node '${id}': ${key}`;
  const { retries, backoff, timeout, priority, cpu, tokens, env, cwd, inputs, outputs, cache, map } = value;
  const asked = retries ?? backoff ?? timeout ?? priority ?? cpu ?? tokens ?? env ?? cwd ?? inputs ?? outputs ?? cache;
  if (map !== undefined && typeof map !== 'string') throw badFlow(place, `${what('map')} must name a node`);
  if (asked === undefined) return { options: cached ? CACHED : DEFAULT_OPTIONS, map: map as string | undefined };
  if (cache !== undefined && typeof cache !== 'boolean') throw badFlow(place, `${what('cache')} must be true or false`);
  const options: NodeOptions = {
    retries: whole(retries, 0, 1_000, what('retries'), place) ?? 0,
    backoff:
      backoff === undefined
        ? DEFAULT_OPTIONS.backoff
        : placed(place, () => resolveBackoff(backoff as Duration | BackoffOptions)),
    timeout: timeout === undefined ? 0 : placed(place, () => duration(timeout, what('timeout'))),
    priority: whole(priority, -1_000, 1_000, what('priority'), place) ?? 0,
    cpu: whole(cpu, 0, 100_000, what('cpu'), place) ?? 1,
    tokens: readTokens(tokens, what('tokens'), place),
    env: readEnv(env, what('env'), place),
    cwd: cwd === undefined ? undefined : text(cwd, what('cwd'), place),
    inputs: texts(inputs, what('inputs'), place),
    outputs: texts(outputs, what('outputs'), place),
    cache: (cache as boolean | undefined) ?? (cached || inputs !== undefined || outputs !== undefined),
  };
  return { options: Object.freeze(options), map: map as string | undefined };
}

const CACHED: NodeOptions = Object.freeze({ ...DEFAULT_OPTIONS, cache: true });

/** Reads `[a, b]` or `{ a: success, b: finished }`. */
export function readNeeds(id: string, needs: unknown, place: Place): [string, NeedPolicy][] {
  if (needs === undefined || needs === null) return [];
  if (typeof needs === 'string') return [[needs, 'success']];
  const bad = () => badFlow(place, `node '${id}': needs must be a list of ids or a map of id to success | finished`);
  if (Array.isArray(needs)) {
    return needs.map((need) => {
      if (typeof need !== 'string' && typeof need !== 'number') throw bad();
      return [String(need), 'success'];
    });
  }
  if (!isRecord(needs)) throw bad();
  return Object.entries(needs).map(([need, policy]) => {
    if (policy !== 'success' && policy !== 'finished') throw bad();
    return [need, policy];
  });
}

export function readTokens(tokens: unknown, what: string, place: Place): Record<string, number> | undefined {
  if (tokens === undefined) return undefined;
  if (!isRecord(tokens)) throw badFlow(place, `${what} must be a map of names to whole numbers`);
  for (const [name, count] of Object.entries(tokens)) whole(count, 0, 1_000_000, `${what}: ${name}`, place);
  return tokens as Record<string, number>;
}

export function readEnv(env: unknown, what: string, place: Place): Record<string, string> | undefined {
  if (env === undefined) return undefined;
  if (!isRecord(env)) throw badFlow(place, `${what} must be a map of names to strings`);
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw badFlow(place, `${what}: '${name}' is not a valid variable name`);
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw badFlow(place, `${what}: ${name} must be a string`);
    result[name] = String(value);
  }
  return result;
}

function whole(value: unknown, low: number, high: number, what: string, place: Place): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= low && value <= high) return value;
  throw badFlow(place, `${what} must be a whole number from ${low} to ${high}, not ${JSON.stringify(value)}`);
}

/** A bare number in a file means seconds: nobody who writes `timeout: 30` means milliseconds. */
function duration(value: unknown, what: string): number {
  if (typeof value === 'number') return Math.max(1, milliseconds(value * 1_000, what));
  return Math.max(1, milliseconds(value as Duration, what));
}

function text(value: unknown, what: string, place: Place): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  throw badFlow(place, `${what} must be a string`);
}

function texts(value: unknown, what: string, place: Place): string[] | undefined {
  if (value === undefined) return undefined;
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list)) throw badFlow(place, `${what} must be a list of file names`);
  return list.map((one) => text(one, what, place));
}

function placed<T>(place: Place, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof CroreError) throw badFlow(place, error.message);
    throw error;
  }
}
