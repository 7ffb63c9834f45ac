import type { Need, NewJob } from '../../job/job.js';
import { DEFAULT_SPEC, keepOf } from '../../job/spec.js';
import type { Limits, Settlement } from '../store.js';
import type { Arg } from './client.js';
import { encodeBody, encodeRecord, freedKey, skipTail } from './codec.js';

/** Argument lists of the larger scripts; their headers in lua/ say what each position means. */

/** Nothing that `add_plain` could not do. */
export function isPlain(job: NewJob): boolean {
  const { spec } = job;
  if (job.priority !== 0 || job.delay !== undefined || job.at !== undefined) return false;
  return spec === DEFAULT_SPEC || (spec.unique === undefined && spec.needs === undefined);
}

export function plainArguments(jobs: readonly NewJob[], now: string, createdAt: number): Arg[] | undefined {
  const args: Arg[] = [now, '0'];
  const ids = new Set<string>();
  let bytes = 0;
  for (const job of jobs) {
    if (!isPlain(job)) return undefined;
    const record = encodeRecord(job, createdAt);
    bytes += typeof record === 'string' ? Buffer.byteLength(record) : record.length;
    ids.add(job.id);
    args.push(job.id, record);
  }
  if (ids.size !== jobs.length) return undefined;
  args[1] = String(bytes);
  return args;
}

export function addArguments(
  queue: string,
  jobs: readonly NewJob[],
  now: string,
  createdAt: number,
  limits: Limits,
): Arg[] {
  const args: Arg[] = [now, limitText(limits.count), limitText(limits.bytes)];
  for (const job of jobs) {
    const { unique, needs = [] } = job.spec;
    args.push(
      job.id,
      encodeRecord(job, createdAt),
      String(job.priority),
      job.at === undefined ? '' : String(job.at),
      String(job.delay ?? 0),
      unique?.key ?? '',
      unique?.scope ?? '',
      String(unique?.ttl ?? 0),
      skipTail(job),
      String(needs.length),
    );
    for (const need of needs) args.push(need.on[0]!, upstreamQueue(need, queue), need.id);
  }
  return args;
}

/** Queues are named in edges only where they differ. */
export function upstreamQueue(need: Need, queue: string): string {
  return need.queue === queue ? '' : need.queue;
}

export function limitText(limit: number | undefined): string {
  return limit === undefined ? '' : String(limit);
}

export function settleArguments(settlements: readonly Settlement[], now: string, createdAt: number): Arg[] {
  const args: Arg[] = [now];
  for (const settlement of settlements) {
    const { lease, move, record } = settlement;
    const id = record?.id ?? lease.id ?? '';
    args.push(
      lease.worker,
      lease.token,
      id,
      id === '' && move.to === 'ready' ? 'raw' : move.to,
      `${move.attempt} ${move.crashes} ${settlement.priority}`,
      move.to === 'done' ? encodeBody(move.result) : (move.error ?? ''),
    );
    pushTail(args, settlement);
    args.push(record ? encodeRecord(record, createdAt) : '');
  }
  return args;
}

/** Number, keep-count and unique key. */
function pushTail(args: Arg[], { move, spec }: Settlement): void {
  switch (move.to) {
    case 'scheduled':
      args.push(String(move.delay), '0', '');
      return;
    case 'ready':
      args.push('0', '0', '');
      return;
    default: {
      const keep = keepOf(spec, move.to);
      args.push(String(keep.ms), String(keep.count), freedKey({ spec }) ?? '');
    }
  }
}

/** For a batch of jobs that are done, all kept alike, with no key to free: the common case, and the cheapest script. */
export function doneArguments(settlements: readonly Settlement[], now: string): Arg[] | undefined {
  const keep = settlements[0]?.spec.keep.done;
  if (!keep) return undefined;
  const args: Arg[] = [now, String(keep.ms), String(keep.count)];
  for (const { lease, move, spec, priority } of settlements) {
    const simple = move.to === 'done' && lease.id !== undefined && spec.keep.done === keep && !spec.unique;
    if (!simple) return undefined;
    args.push(lease.id!, lease.token, `${move.attempt} ${move.crashes} ${priority}`, encodeBody(move.result));
  }
  return args;
}
