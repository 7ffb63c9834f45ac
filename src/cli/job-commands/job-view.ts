import { isUtf8 } from 'node:buffer';
import type { BatchCounts, JobRef, JobView, State } from '../../index.js';
import { attemptText } from '../../job/spec.js';
import { type Colour, isoTime, type Output, printable } from '../output.js';
import { attemptObject, showAttempts } from './attempt-view.js';

type AnyJob = JobView<unknown, unknown>;

const COLOURS: Partial<Record<State, Colour>> = { dead: 'red', done: 'green', active: 'yellow', cancelled: 'dim' };

export function colourOf(state: State): Colour | undefined {
  return COLOURS[state];
}

/** A value as text: text unchanged, bytes as text if they are, everything else as JSON. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  return JSON.stringify(value);
}

/** A value for people, on one line. */
function shown(value: unknown, most: number): string {
  if (value instanceof Uint8Array && !isUtf8(value)) return `(encoded or binary, ${value.length} bytes)`;
  return printable(valueText(value), most);
}

/** A job as a JSON object: times in ISO format, bytes in base64 under a name that says so. */
export function jobObject(job: AnyJob): object {
  const { payload, result, attempts, actions, createdAt, runAt, startedAt, finishedAt, ...rest } = job;
  const times = { createdAt, runAt, startedAt, finishedAt };
  return {
    ...rest,
    attempts: attempts.map(attemptObject),
    actions: actions.map(({ at, ...action }) => ({ ...action, at: isoTime(at) })),
    ...valueField('payload', payload),
    ...valueField('result', result),
    ...Object.fromEntries(
      Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, isoTime(ms)]])),
    ),
  };
}

/** A field of an object: JSON values unchanged, bytes in base64, no field for undefined. */
export function valueField(name: string, value: unknown): object {
  if (value === undefined) return {};
  if (value instanceof Uint8Array) return { [`${name}Base64`]: Buffer.from(value).toString('base64') };
  return { [name]: value };
}

export function showJob(out: Output, job: AnyJob): void {
  const moment = (ms: number | undefined) => (ms === undefined ? undefined : isoTime(ms));
  const value = (some: unknown) => (some === undefined ? undefined : shown(some, 2_000));
  out.fields([
    ['id', printable(job.id)],
    ['queue', printable(job.queue)],
    ['state', out.paint(job.state, colourOf(job.state))],
    ['payload', value(job.payload)],
    ['result', value(job.result)],
    ['error', value(job.error)],
    ['attempt', attemptText(job.attempt, job.maxAttempts)],
    ['crashes', job.crashes > 0 ? String(job.crashes) : undefined],
    ['priority', job.priority === 0 ? undefined : String(job.priority)],
    ['created', moment(job.createdAt)],
    ['due', job.state === 'scheduled' ? moment(job.runAt) : undefined],
    ['started', moment(job.startedAt)],
    ['finished', moment(job.finishedAt)],
    ['worker', value(job.worker)],
    ['progress', value(job.progress)],
    ...job.needs.map(({ queue, id, on }) => ['needs', `${printable(id)} of ${printable(queue)} (${on})`] as const),
    ...job.children.map(({ queue, id, on }) => ['child', `${printable(id)} of ${printable(queue)} (${on})`] as const),
    ['parent', reference(job.parent)],
    ['member of', reference(job.memberOf)],
    ...(job.batch ? countFields(job.batch) : []),
    ...Object.entries(job.headers).map(([name, text]) => [`header ${printable(name)}`, printable(text)] as const),
    ...(job.log ?? []).map((line) => ['log', printable(line, 2_000)] as const),
  ]);
  showAttempts(out, job.attempts);
  for (const { action, at, by, detail } of job.actions) {
    const what = detail === undefined ? '' : `${action === 'moved' ? ' from' : ':'} ${printable(detail)}`;
    out.write(`${action}${what} by ${printable(by)} ${isoTime(at)}`);
  }
}

/** The counts of a batch, for people. */
export function countFields(status: BatchCounts): [string, string][] {
  const { open: isOpen, total, done, dead, cancelled } = status;
  const pending = total - done - dead - cancelled;
  const counts = { done, dead, cancelled, pending };
  const parts = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []));
  return [
    ['members', parts.length > 0 ? `${total}: ${parts.join(', ')}` : String(total)],
    ['open', isOpen ? 'yes, members can be added' : 'no'],
  ];
}

function reference(job: JobRef | undefined): string | undefined {
  return job && `${printable(job.id)} of ${printable(job.queue)}`;
}

/** Prints jobs as a table, page by page. */
export function jobTable(out: Output): (jobs: readonly AnyJob[]) => void {
  return out.table<AnyJob>(
    [
      { title: 'id', of: (job) => printable(job.id), keep: true },
      { title: 'state', of: (job) => job.state, colour: (job) => colourOf(job.state) },
      { title: 'attempt', of: (job) => attemptText(job.attempt, job.maxAttempts).replace(' of ', '/') },
      { title: 'time', of: (job) => isoTime(job.finishedAt ?? job.startedAt ?? job.runAt ?? job.createdAt) },
      { title: 'payload', of: (job) => shown(job.payload, 60) },
      { title: 'error', of: (job) => printable(job.error ?? '', 120) },
    ],
    jobObject,
  );
}
