import { checkName } from '../../engine/check.js';
import { CroreError } from '../../errors.js';
import type { AddOptions, Capacity, Handle, Queue } from '../../index.js';
import { action, answer, type CommandSession, type StoreOptions, withStore } from '../action.js';
import { lineGroups } from '../input-lines.js';
import { duration, notBoth, time, whole } from '../option-values.js';
import { type Output, printable } from '../output.js';
import { program, storeOptions } from '../program.js';
import {
  argumentBytes,
  given,
  JOB_LINE,
  type JobLine,
  jobLine,
  readText,
  readValue,
  resolveJobLine,
} from './job-options.js';

interface PushOptions extends StoreOptions, JobLine {
  delay?: string;
  at?: string;
  id?: string;
  limit?: string;
  raw?: boolean;
}

/** Options that only apply to jobs. */
const JOB_OPTIONS = ['delay', 'at', 'id', ...JOB_LINE] as const;
/** The library's limit for a payload. */
const LONGEST = 1_048_576;

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore push',
    summary:
      'Add jobs to a queue, one for each payload, and print their ids. Without payloads each line of standard input is one. A payload that parses as JSON is that value, any other is text.',
    examples: [
      [`crore push mails '{"to":"ada@example.org"}'`, 'one job'],
      ['crore push mails ada bob --delay 10m', 'two jobs, in ten minutes'],
      ['crore push pages --at 2026-12-24T18:00Z index', 'not before this moment'],
      ['crore push feeds --unique acme acme', "a 'duplicate' while such a job is waiting or running"],
      ['find . -name "*.wav" | crore push sounds --text', 'a job for each line'],
      ['crore push tasks --raw < lines.txt', 'raw tasks: no ids, no records, the cheapest there is'],
    ],
  })
    .argument('<queue>', 'Name of the queue.')
    .argument('[payload...]', "After '--' also such as begin with a dash.")
    .option('--delay <time>', "Not before this much time has passed, such as '10s', '5m', '2h'.")
    .option('--at <time>', 'Not before this moment, in ISO.')
    .option('--id <id>', 'Identity within the queue, for a single payload (default: made up).')
    .option('--limit <n>', 'Add nothing to a queue in which so many already wait.')
    .option('--raw', 'Push raw tasks, the very bytes given.');
  action(storeOptions(jobLine(command)), push);
  return answer(command, argv);
}

async function push(name: string, payloads: string[], options: PushOptions): Promise<number> {
  checkName(name, 'queue name');
  const limits = { count: whole(options.limit, '--limit', 0) };
  const asked = options.raw ? refuseJobOptions(options) : jobOptions(options);
  if (payloads.length === 0 && process.stdin.isTTY) {
    throw new CroreError('BAD_OPTION', 'no payload: give some as arguments, or as lines on standard input');
  }
  if (asked?.id !== undefined && payloads.length > 1) throw severalForId();
  const lines = payloads.map(argumentBytes);
  const groups = payloads.length > 0 ? [lines] : lineGroups(process.stdin, LONGEST);
  const work = (session: CommandSession) => pushAll(session, name, limits, groups, options, asked);
  return withStore(options, work, { create: true });
}

type Groups = Iterable<Buffer[]> | AsyncIterable<Buffer[]>;

async function pushAll(
  { crore, out }: CommandSession,
  name: string,
  limits: Capacity,
  groups: Groups,
  options: PushOptions,
  asked: AddOptions | undefined,
): Promise<number> {
  const queue = crore.queue(name, { limits });
  let refused = 0;
  if (!asked) {
    refused = await pushRaw(queue, groups, out);
  } else {
    const read = options.text ? readText : readValue;
    for await (const group of asked.id === undefined ? groups : single(groups)) {
      const handles = await queue.addMany(group.map((bytes) => ({ payload: read(bytes), ...asked })));
      for (const handle of handles) out.say(...told(handle));
      refused += handles.filter(({ outcome }) => outcome === 'full').length;
    }
  }
  if (refused > 0) process.stderr.write(`crore: queue '${printable(name)}' is full: ${refused} not added\n`);
  return refused > 0 ? 1 : 0;
}

/** Pushes the exact bytes, and reports how many tasks were pushed even if it stops before the end of the input. */
async function pushRaw(queue: Queue, groups: Groups, out: Output): Promise<number> {
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
  return refused;
}

function told({ queue, id, outcome }: Handle<unknown, unknown>): [object: object, text: string] {
  if (outcome === 'full') return [{ queue, outcome }, 'full'];
  return [{ queue, id, outcome }, outcome === 'created' ? printable(id, 512) : `${printable(id, 512)}  ${outcome}`];
}

/** The whole input, which must be one payload: two jobs cannot have the same id. */
async function* single(groups: Groups): AsyncGenerator<Buffer[]> {
  const all: Buffer[] = [];
  for await (const group of groups) {
    all.push(...group);
    if (all.length > 1) throw severalForId();
  }
  yield all;
}

function severalForId(): CroreError {
  return new CroreError('BAD_OPTION', '--id is for a single payload, several were given');
}

function refuseJobOptions(options: PushOptions): undefined {
  const given = JOB_OPTIONS.find((name) => options[name] !== undefined);
  if (given) throw new CroreError('BAD_OPTION', `--${given} is for jobs: a raw task (--raw) has no options`);
}

function jobOptions(options: PushOptions): AddOptions {
  notBoth(options, 'delay', 'at');
  const { id, delay, at } = options;
  const own = {
    id: id === undefined ? undefined : checkName(id, '--id'),
    delay: duration(delay, '--delay'),
    at: time(at, '--at'),
  };
  return { ...given(own), ...resolveJobLine(options) };
}
