import { writeChildren } from '../../../job/children.js';
import type { JobRef, Need, NewJob } from '../../../job/job.js';
import { storedError } from '../../../job/reported-error.js';
import { DEFAULT_SPEC, FORGETFUL_SPEC, isRelated, keepOf } from '../../../job/spec.js';
import type { Capacity, GroupLimits, JobChanges, QueueLimits, Settlement } from '../../store.js';
import type { Arg } from '../connection/client.js';
import { encodeBody, encodeRecord, freedKey, skipTail } from './codec.js';
import { pack } from './msgpack.js';

/** Argument lists of the larger scripts; the script headers in lua/ document each position. */

/** Whether `add_plain`, or with a group `add_grouped`, can add this job. */
export function isPlain(job: NewJob, grouped = false): boolean {
  const { spec } = job;
  if (grouped !== (spec.group !== undefined)) return false;
  if (job.priority !== 0 || job.delay !== undefined || job.at !== undefined || job.replaceEnded) return false;
  if (spec === DEFAULT_SPEC || spec === FORGETFUL_SPEC) return true;
  if (grouped && spec.reservation > 0) return false;
  return spec.unique === undefined && spec.needs === undefined && !isRelated(spec);
}

/** What `add_plain` does with the ids: they were generated for this call; it looks for them; it does, and some jobs have reservations. */
export const IDS = { fresh: '1', chosen: '0', reserved: 'r' } as const;

export function plainArguments(jobs: readonly NewJob[], now: string, createdAt: number): Arg[] | undefined {
  const fields: Arg[] = [];
  let reserved = false;
  const ids = new Set<string>();
  let bytes = 0;
  let named = 0;
  for (const job of jobs) {
    if (!isPlain(job)) return undefined;
    const record = encodeRecord(job, createdAt);
    bytes += typeof record === 'string' ? Buffer.byteLength(record) : record.length;
    if (job.spec.reservation > 0) reserved = true;
    if (!job.fresh) {
      ids.add(job.id);
      named += 1;
    }
    fields.push(job.id, record);
  }
  if (ids.size !== named) return undefined;
  const kind = reserved ? IDS.reserved : named > 0 ? IDS.chosen : IDS.fresh;
  return [now, String(bytes), kind, pack(fields)];
}

export function groupedArguments(jobs: readonly NewJob[], now: string, createdAt: number): Arg[] | undefined {
  const fields: Arg[] = [];
  const ids = new Set<string>();
  let bytes = 0;
  for (const job of jobs) {
    if (!isPlain(job, true)) return undefined;
    const record = encodeRecord(job, createdAt);
    bytes += typeof record === 'string' ? Buffer.byteLength(record) : record.length;
    ids.add(job.id);
    fields.push(job.id, record, job.spec.group!);
  }
  return ids.size === jobs.length ? [now, String(bytes), pack(fields)] : undefined;
}

export function addArguments(
  queue: string,
  jobs: readonly NewJob[],
  now: string,
  createdAt: number,
  limits: Capacity,
): Arg[] {
  const args: Arg[] = [now, capacityText(limits.count), capacityText(limits.bytes)];
  for (const job of jobs) {
    const { unique, needs = [], parent, batch, batchPolicy } = job.spec;
    args.push(
      job.id,
      encodeRecord(job, createdAt),
      String(job.priority),
      job.at === undefined ? '' : String(job.at),
      String(job.delay ?? 0),
      unique?.key ?? '',
      unique?.mode ?? 'keep',
      String(unique?.ttl ?? 0),
      skipTail(job),
      job.replaceEnded ? '1' : '',
      batchPolicy ?? '',
      batch ? memberName(batch, queue) : '',
      parent ? memberName(parent, queue) : '',
      String(needs.length),
    );
    for (const need of needs) args.push(need.on[0]!, upstreamQueue(need, queue), need.id);
  }
  return args;
}

/** How a job of this queue names another one that depends on it or holds its record: '<queue>\0<id>', with an empty queue for its own. */
export function memberName(other: JobRef, queue: string): string {
  return `${other.queue === queue ? '' : other.queue}\0${other.id}`;
}

/** Dependencies name a queue only if it differs from the job's own. */
export function upstreamQueue(need: Need, queue: string): string {
  return need.queue === queue ? '' : need.queue;
}

export function capacityText(limit: number | undefined): string {
  return limit === undefined ? '' : String(limit);
}

export function settleArguments(settlements: readonly Settlement[], now: string, createdAt: number): Arg[] {
  const args: Arg[] = [now];
  for (const settlement of settlements) {
    const { lease, outcome: move, record } = settlement;
    const id = record?.id ?? lease.id ?? '';
    args.push(
      lease.worker,
      lease.token,
      id,
      id === '' && move.to === 'ready' ? 'raw' : move.to,
      `${move.attempt} ${move.crashes} ${settlement.priority}`,
      move.to === 'done' ? encodeBody(move.result) : errorText(move),
    );
    pushTail(args, settlement);
    args.push(record ? encodeRecord(record, createdAt) : '');
    args.push(String(settlement.spec.idWindow ?? 0), settlement.attempt ?? '');
  }
  return args;
}

function errorText(move: Exclude<Settlement['outcome'], { to: 'done' }>): string {
  if (move.to === 'blocked') return '';
  return (move.to === 'scheduled' ? storedError(move.error, move.answered) : move.error) ?? '';
}

/** Arguments of `park`. */
export function parkArguments(queue: string, { lease, outcome, spec, priority }: Settlement, now: string): Arg[] {
  const { attempt, crashes, list } = outcome as Extract<Settlement['outcome'], { to: 'blocked' }>;
  const args: Arg[] = [now, lease.token, lease.id!, `${attempt} ${crashes} ${priority}`];
  args.push(skipTail({ spec }, 'dead'), writeChildren(list));
  for (const child of list.children) args.push(child.on[0]!, upstreamQueue(child, queue), child.id);
  return args;
}

/** Number, keep-count and unique key. */
function pushTail(args: Arg[], { outcome: move, spec }: Settlement): void {
  switch (move.to) {
    case 'scheduled':
      args.push(String(move.delay), '0', '');
      return;
    case 'blocked':
    case 'ready':
      args.push('0', '0', '');
      return;
    default: {
      const keep = keepOf(spec, move.to);
      args.push(String(keep.ms), String(keep.count), freedKey({ spec }) ?? '');
    }
  }
}

/**
 * For a batch of distinct jobs that are done, with default retention or none, and no unique key to free: the common
 * cases and the cheapest script. Adjacent jobs with the same outcome share their common arguments.
 */
export function doneArguments(settlements: readonly Settlement[], now: string): Arg[] | undefined {
  const { idWindow = 0 } = settlements[0]!.spec;
  const keep = settlements[0]!.spec.keep.done;
  if (keep !== DEFAULT_SPEC.keep.done && keep !== FORGETFUL_SPEC.keep.done) return undefined;
  const args: Arg[] = [];
  const ids = new Set<string>();
  let group = -1;
  let size = 0;
  for (const { lease, outcome: move, spec, priority } of settlements) {
    if (move.to !== 'done' || lease.id === undefined || spec.keep.done !== keep || spec.unique) return undefined;
    if ((spec.idWindow ?? 0) !== idWindow) return undefined;
    const counts = `${move.attempt} ${move.crashes} ${priority}`;
    if (group < 0 || move.result !== undefined || args[group + 1] !== '' || args[group] !== counts) {
      group = args.length;
      size = 0;
      args.push(counts, encodeBody(move.result), '');
    }
    size += 1;
    args[group + 2] = String(size);
    args.push(lease.id, lease.token);
    ids.add(lease.id);
  }
  return ids.size === settlements.length ? [now, String(keep.count), String(idWindow), pack(args)] : undefined;
}

/**
 * Six numbers, 0 for no limit, empty if nothing is limited; and whether groups are ordered, which is also a concurrency of one: all that
 * earlier versions can do about it.
 */
export function limitsArguments({ concurrency = 0, rate, group = {} }: QueueLimits): [limits: string, ordered: string] {
  const numbers = [concurrency, rate?.count ?? 0, rate?.per ?? 0];
  numbers.push(group.ordered ? 1 : (group.concurrency ?? 0), group.rate?.count ?? 0, group.rate?.per ?? 0);
  return [numbers.every((number) => number === 0) ? '' : numbers.join(' '), group.ordered ? '1' : ''];
}

export function readLimits(text: string, ordered: boolean): QueueLimits {
  const [most = 0, count = 0, per = 0, groupMost = 0, groupCount = 0, groupPer = 0] = text.split(' ').map(Number);
  const part = (concurrency: number, started: number, ms: number) => ({
    ...(concurrency > 0 ? { concurrency } : {}),
    ...(started > 0 ? { rate: { count: started, per: ms } } : {}),
  });
  const group: GroupLimits = part(ordered ? 0 : groupMost, groupCount, groupPer);
  if (ordered) group.ordered = true;
  return { ...part(most, count, per), ...(Object.keys(group).length > 0 ? { group } : {}) };
}

/** Arguments of `update`. The new payload comes in a record of its own, whose head is ignored. */
/** `line`: for the history of the job, or nothing. */
export function updateArguments(
  id: string,
  { payload, priority, at, delay }: JobChanges,
  now: string,
  line: string,
): Arg[] {
  const record = payload === undefined ? '' : encodeRecord({ id, payload, priority: 0, spec: DEFAULT_SPEC }, 0);
  const text = (number: number | undefined) => (number === undefined ? '' : String(number));
  return [now, id, record, text(priority), text(at), text(delay), line];
}
