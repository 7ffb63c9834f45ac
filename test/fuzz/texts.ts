import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { resolveSettings, SETTINGS } from '../../dist/cli/server-commands/settings.js';
import { resolveFilter } from '../../dist/engine/input/filter.js';
import { resolveWhen } from '../../dist/engine/schedules/schedule-ticks.js';
import { isCroreError } from '../../dist/errors.js';
import { readDocument } from '../../dist/flow/input/document.js';
import { readTables } from '../../dist/flow/input/tables.js';
import { milliseconds } from '../../dist/job/duration.js';
import { STATES } from '../../dist/job/job.js';
import { parseArgs } from '../../dist/ring/args.js';
import { parseStoreUrl } from '../../dist/store/url.js';
import type { Target } from './fuzzing.js';

/** Longer than this for a short text is an attack on the processor. */
const SLOWEST = 2_000;
const dir = mkdtempSync(join(tmpdir(), 'crore-fuzz-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

/** Bad input may only be refused, in words and in time, and must not change anything that other code relies on. */
export async function refusesOnly(read: () => unknown): Promise<void> {
  const since = performance.now();
  try {
    await read();
  } catch (error) {
    if (!isCroreError(error)) throw error;
    if (error.message.length === 0) throw new Error('a refusal without words', { cause: error });
  }
  if (performance.now() - since > SLOWEST) throw new Error(`it took ${Math.round(performance.now() - since)} ms`);
  if ('polluted' in {}) throw new Error('the prototype of all objects was changed');
}

const name = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', ''),
  fc.string({ maxLength: 8 }),
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.string({ maxLength: 12 }),
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constantFrom(null, '10s', '1h', 'success', 'finished', {}, []),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(name, tie('any'), { maxKeys: 4 }),
  ),
})).any;

const KEYS = [
  'run',
  'needs',
  'env',
  'timeout',
  'retries',
  'tokens',
  'map',
  'queue',
  'payload',
  'cache',
  'shell',
  'cwd',
];
const node = fc.dictionary(fc.oneof(fc.constantFrom(...KEYS), name), value, { maxKeys: 5 });
const flow = fc.oneof(
  fc.record({ nodes: fc.dictionary(name, fc.oneof(node, value), { maxKeys: 5 }) }),
  fc.record({ nodes: fc.oneof(value, fc.array(node)), name: value, env: value, tokens: value, cache: value }),
  value,
);

/** A text with some of its characters exchanged, removed or repeated. */
function damaged(text: fc.Arbitrary<string>, pieces: readonly string[]): fc.Arbitrary<string> {
  const change = fc.tuple(fc.nat(400), fc.nat(3), fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 4 })));
  return fc.tuple(text, fc.array(change, { maxLength: 4 })).map(([whole, changes]) =>
    changes.reduce((now, [at, length, piece]) => {
      const start = now.length === 0 ? 0 : at % now.length;
      return now.slice(0, start) + piece + now.slice(start + length);
    }, whole),
  );
}

const YAML = [
  ':',
  '- ',
  '&a ',
  '*a',
  '<<: *a',
  '!!js/function ',
  '|\n',
  '>\n',
  '\t',
  '{',
  '}',
  '[',
  ']',
  '? ',
  '---\n',
  '%',
  '"',
  "'",
  '\0',
  '#',
];
const asYaml = flow.map((one) => JSON.stringify(one, null, 1)?.replaceAll(/[{},]/g, ' ') ?? '');

function fromFile(file: string, read: (path: string) => unknown): (text: string) => Promise<void> {
  const path = join(dir, file);
  return (text) => {
    writeFileSync(path, text);
    return refusesOnly(() => read(path));
  };
}

const target = <T>(one: Target<T>) => one as Target;
const keys = SETTINGS.map(({ key }) => key);
const scalar = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.string({ maxLength: 10 }),
  fc.boolean(),
  fc.constantFrom('10s', 'off', ':1'),
);
const toml = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(...keys), name), scalar), { maxLength: 6 })
  .map((lines) => lines.map(([key, one]) => `${key} = ${JSON.stringify(one)}`).join('\n'));
const URLS = [
  'sqlite:',
  'redis://',
  'rediss://',
  'redis+sentinel://',
  'redis+cluster://',
  'grpc://',
  'grpcs://',
  '@',
  ':',
  '/',
  '?',
  '#',
  '%',
  '%zz',
  '[::1]',
  '99999',
  ',',
  '&',
  'prefix=',
  'ca=',
  '..',
  '\0',
  ' ',
];
const FLAGS = [
  '-u',
  '-k',
  '-x',
  '-c',
  '-q',
  '-t',
  '-e',
  '--',
  '-',
  '--stdin',
  '--max-items',
  '--joblog',
  '--lock-name',
  '--on-lost',
  '{}',
  '=',
  '--grace=1',
  '-1',
  '1e9',
  'NaN',
  'redis://localhost',
  'sh',
];
const CRON = [
  '*',
  '/',
  '-',
  ',',
  '@',
  'L',
  'W',
  '#',
  '?',
  ' ',
  '0',
  '59',
  '99',
  'MON',
  'JAN',
  '@daily',
  '*/0',
  '1-',
  '5-1',
  '\n',
];
const pieces = (all: readonly string[]) =>
  fc.array(fc.oneof(fc.constantFrom(...all), fc.string({ maxLength: 6 })), { maxLength: 10 });

export const TEXTS: Target[] = [
  target({ name: 'flow yaml', input: damaged(asYaml, YAML), feed: fromFile('f.yaml', readDocument) }),
  target({
    name: 'flow json',
    input: damaged(
      flow.map((one) => JSON.stringify(one) ?? ''),
      ['{', '}', '[', ']', '"', ',', ':', '\\u0000', '1e999'],
    ),
    feed: fromFile('f.json', readDocument),
  }),
  target({
    name: 'flow csv',
    input: damaged(fc.constant('id,command\na,true\nb,"echo ""x"""\n'), [
      ',',
      '"',
      '\n',
      '\r',
      '\ufeff',
      'id',
      'a,b,c\n',
    ]),
    feed: fromFile('w.csv', (path) => readTables(path, path)),
  }),
  target({
    name: 'server toml',
    input: damaged(toml, ['[', ']', '[[x]]', '"""', "'", '=', '.', '\n', '0x', '1979-05-27', '__proto__', '#']),
    feed: fromFile('crore.toml', (path) => resolveSettings({}, {}, path)),
  }),
  target({
    name: 'store url',
    input: pieces(URLS).map((all) => all.join('')),
    feed: (url) => refusesOnly(() => parseStoreUrl(url)),
  }),
  target({ name: 'w8y arguments', input: pieces(FLAGS), feed: (argv) => refusesOnly(() => parseArgs(argv, {})) }),
  target({
    name: 'duration',
    input: fc.oneof(
      value,
      pieces(['1', 's', 'ms', 'h', '.', '-', 'e', ' ']).map((all) => all.join('')),
    ),
    feed: (text) => refusesOnly(() => milliseconds(text as string, 'x')),
  }),
  target({
    name: 'cron',
    input: fc.oneof(
      pieces(CRON).map((all) => all.join(' ')),
      pieces(CRON).map((all) => all.join('')),
      value,
    ),
    feed: (text) => refusesOnly(() => resolveWhen(text as string, undefined)),
  }),
  target({
    name: 'filter',
    input: fc.oneof(
      value,
      fc.dictionary(fc.constantFrom('state', 'id', 'text', 'group', 'after', 'before', 'x'), value),
    ),
    feed: (filter) => refusesOnly(() => resolveFilter(filter as object, STATES, 'list')),
  }),
];
