import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { AddOptions, Handle, Queue } from '../../index.js';
import { contextOf } from '../../job/trace-context.js';
import { action, answer, type CommandSession, type StoreOptions, withStore } from '../action.js';
import { duration, notBoth, time, whole } from '../option-values.js';
import { type Output, printable } from '../output.js';
import { program, storeOptions } from '../program.js';
import { given, JOB_LINE, type JobLine, jobLine, readPayload, readText, resolveJobLine } from './job-options.js';
import { type Groups, inputGroups, type Tally } from './push-input.js';

interface PushOptions extends StoreOptions, JobLine {
  header?: string[];
  delay?: string;
  at?: string;
  id?: string;
  batch?: string;
  batchQueue?: string;
  limit?: string;
  raw?: boolean;
}

/** Options that only apply to jobs. */
const JOB_OPTIONS = ['delay', 'at', 'id', 'batch', 'batchQueue', 'header', ...JOB_LINE] as const;

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore push',
    summary:
      'Add jobs to a queue, one for each payload, and print their ids. Without payloads, each line of standard input is one. A payload that parses as JSON is that value; any other is text, unless it begins like JSON, with { or [.',
    examples: [
      [`crore push mails '{"to":"ada@example.org"}'`, 'one job'],
      ['crore push mails ada bob --delay 10m', 'two jobs, in ten minutes'],
      ['crore push pages --at 2026-12-24T18:00Z index', 'not before this time'],
      ['crore push feeds --unique acme acme', "prints 'duplicate' while a job with this key waits or runs"],
      ['find . -name "*.wav" | crore push sounds --text', 'a job for each line'],
      ['crore push tasks --raw < lines.txt', 'raw tasks: without ids or records, the fastest way'],
    ],
  })
    .argument('<queue>', 'Name of the queue.')
    .argument('[payload...]', "Payloads; after '--' they may begin with a dash.")
    .option('--delay <time>', "Delay before the job may start, such as '10s', '5m', '2h'.")
    .option('--at <time>', 'Earliest start, as an ISO time.')
    .option('--id <id>', 'Id of the job, for a single payload (default: generated).')
    .option('--batch <id>', 'The batch of which the jobs are members: see crore batch.')
    .option('--batch-queue <queue>', 'The queue of that batch (default: the same queue).')
    .option('--header <name=value>', 'Text stored with the job; may be repeated.', collect)
    .option('--limit <n>', 'Add nothing if this many jobs already wait in the queue.')
    .option('--raw', 'Push raw tasks, byte for byte, without ids or records.');
  action(storeOptions(jobLine(command)), push);
  return answer(command, argv);
}

async function push(name: string, payloads: string[], options: PushOptions): Promise<number> {
  checkName(name, 'queue name');
  const limits = { count: whole(options.limit, '--limit', 0) };
  if (payloads.length === 0 && process.stdin.isTTY) {
    throw new CroreError('BAD_OPTION', 'no payload: give payloads as arguments, or as lines on standard input');
  }
  const tally = { added: 0, line: 0 };
  if (options.raw) {
    refuseJobOptions(options);
    const groups = inputGroups(payloads, (bytes) => bytes, tally);
    const work = ({ crore, out }: CommandSession) => pushTasks(crore.queue(name, { limits }), groups, out);
    return withStore(options, work, { create: true });
  }
  const asked = jobOptions(name, options);
  if (asked.id !== undefined && payloads.length > 1) throw severalForId();
  const groups = inputGroups(payloads, options.text ? readText : readPayload, tally);
  const work = ({ crore, out }: CommandSession) => pushJobs(crore.queue(name, { limits }), groups, asked, tally, out);
  return withStore(options, work, { create: true });
}

async function pushJobs(
  queue: Queue,
  groups: Groups<unknown>,
  asked: AddOptions,
  tally: Tally,
  out: Output,
): Promise<number> {
  let refused = 0;
  const headers = contextOf(process.env);
  const all = { ...headers, ...asked.headers };
  const traced = Object.keys(all).length > 0 ? { headers: all } : {};
  for await (const group of asked.id === undefined ? groups : single(groups)) {
    const handles = await queue.addMany(group.map((payload) => ({ payload, ...asked, ...traced })));
    for (const handle of handles) out.say(...described(handle));
    tally.added += handles.filter(({ outcome }) => outcome === 'created').length;
    refused += handles.filter(({ outcome }) => outcome === 'full').length;
  }
  return answerFull(queue, refused);
}

/** Pushes the exact bytes, and reports how many tasks were pushed even if it stops before the end of the input. */
async function pushTasks(queue: Queue, groups: Groups<Buffer>, out: Output): Promise<number> {
  let pushed = 0;
  let refused = 0;
  try {
    for await (const group of groups) {
      const accepted = await queue.push(group);
      pushed += accepted;
      refused += group.length - accepted;
    }
  } finally {
    out.say({ queue: queue.name, pushed, refused }, `${pushed} pushed`);
  }
  return answerFull(queue, refused);
}

function answerFull({ name }: Queue, refused: number): number {
  if (refused > 0) process.stderr.write(`crore: queue '${printable(name)}' is full: ${refused} not added\n`);
  return refused > 0 ? 1 : 0;
}

function described({ queue, id, outcome }: Handle<unknown, unknown>): [object: object, text: string] {
  if (outcome === 'full') return [{ queue, outcome }, 'full'];
  return [{ queue, id, outcome }, outcome === 'created' ? printable(id, 512) : `${printable(id, 512)}  ${outcome}`];
}

/** The whole input, which must be one payload: two jobs cannot have the same id. */
async function* single<T>(groups: Groups<T>): AsyncGenerator<T[]> {
  const all: T[] = [];
  for await (const group of groups) {
    all.push(...group);
    if (all.length > 1) throw severalForId();
  }
  yield all;
}

function severalForId(): CroreError {
  return new CroreError('BAD_OPTION', '--id is for a single payload, several were given');
}

function refuseJobOptions(options: PushOptions): void {
  const given = JOB_OPTIONS.find((name) => options[name] !== undefined);
  if (given) throw new CroreError('BAD_OPTION', `--${given} is for jobs: a raw task (--raw) has no options`);
}

/** `--header` may be given several times. */
function collect(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), text];
}

function headersOf(texts: readonly string[] | undefined): Record<string, string> | undefined {
  if (texts === undefined) return undefined;
  const pairs = texts.map((text) => {
    const cut = text.indexOf('=');
    if (cut < 1) throw new CroreError('BAD_OPTION', `--header must be NAME=VALUE, not '${printable(text, 80)}'`);
    return [text.slice(0, cut), text.slice(cut + 1)] as const;
  });
  return Object.fromEntries(pairs);
}

function batchOf(name: string, { batch, batchQueue }: PushOptions): AddOptions['batch'] {
  if (batch === undefined && batchQueue !== undefined)
    throw new CroreError('BAD_OPTION', '--batch-queue needs --batch with the id of the batch');
  if (batch === undefined) return undefined;
  return { queue: checkName(batchQueue ?? name, '--batch-queue'), id: checkName(batch, '--batch') };
}

function jobOptions(name: string, options: PushOptions): AddOptions {
  notBoth(options, 'delay', 'at');
  const { id, delay, at } = options;
  const own = {
    batch: batchOf(name, options),
    id: id === undefined ? undefined : checkName(id, '--id'),
    delay: duration(delay, '--delay'),
    at: time(at, '--at'),
    headers: headersOf(options.header),
  };
  return { ...given(own), ...resolveJobLine(options) };
}
