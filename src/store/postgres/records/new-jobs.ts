import type { Body, Need, NewJob, Spec } from '../../../job/job.js';
import { DEFAULT_SPEC, encodeSpec, FORGETFUL_SPEC, NAMED_SPEC } from '../../../job/spec.js';
import { type Arg, json, textList } from '../connection/arguments.js';

/** New jobs in the form that the functions of the database take: see sql/jobs/add.sql. */

interface WrittenPayload {
  body?: string;
  bytes?: string;
  size: number;
}

interface WrittenJob extends WrittenPayload {
  id: string;
  priority: number;
  at?: number;
  delay?: number;
  spec?: string;
  traits?: Traits;
  group?: string;
  reservation?: number;
  unique?: { key: string; ttl: number; mode?: string };
  needs?: Need[];
  parent?: Spec['parent'];
  batch?: Spec['batch'];
  policy?: string;
  fresh?: true;
  replace?: true;
}

/** What matters at the end of a job, as far as it is not the default: see sql/lib/traits.sql. */
interface Traits {
  done?: [number, number];
  dead?: [number, number];
  key?: string;
  scope?: string;
  window?: number;
}

export function writePayload(payload: Body): WrittenPayload {
  if (typeof payload === 'string') return { body: payload, size: Buffer.byteLength(payload) };
  return {
    bytes: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64'),
    size: payload.length,
  };
}

export function writeJob({ id, fresh, payload, priority, delay, at, replaceEnded, spec }: NewJob): WrittenJob {
  const { unique, needs, parent, batch, batchPolicy } = spec;
  return {
    id,
    ...writePayload(payload),
    priority,
    at,
    delay,
    spec: encodeSpec(spec) || undefined,
    traits: storedTraits(spec),
    group: spec.group,
    reservation: spec.reservation || undefined,
    unique: unique && { key: unique.key, ttl: unique.ttl, mode: unique.mode },
    needs,
    parent,
    batch,
    policy: batchPolicy,
    fresh: fresh || undefined,
    replace: replaceEnded || undefined,
  };
}

export function traitsOf({ keep, unique, idWindow }: Spec): Traits | undefined {
  const usual = DEFAULT_SPEC.keep;
  if (keep === usual && !unique && idWindow === undefined) return undefined;
  return {
    done: keep.done === usual.done ? undefined : [keep.done.ms, keep.done.count],
    dead: keep.dead === usual.dead ? undefined : [keep.dead.ms, keep.dead.count],
    key: unique?.key,
    scope: unique?.scope,
    window: idWindow || undefined,
  };
}

/** The two most common options have a short name in the database, and no traits: 48 bytes less for each job. */
function storedTraits(spec: Spec): Traits | undefined {
  return spec === FORGETFUL_SPEC || spec === NAMED_SPEC ? undefined : traitsOf(spec);
}

/** Whether none of the jobs has a unique key or concerns another job. */
export function arePlain(jobs: readonly NewJob[]): boolean {
  return jobs.every(
    ({ replaceEnded, spec: { unique, needs, parent, batch, batchPolicy } }) =>
      !replaceEnded && !unique && !needs && !parent && !batch && batchPolicy === undefined,
  );
}

/** The arguments of `add_plain`, if there is nothing special about the jobs: see sql/jobs/add.sql. */
export function plainArguments(jobs: readonly NewJob[]): Arg[] | undefined {
  const [{ spec: first }] = jobs as [NewJob];
  const written = encodeSpec(first);
  for (const { payload, priority, at, delay, spec } of jobs) {
    if (typeof payload !== 'string' || priority !== 0 || at !== undefined || (delay ?? 0) > 0) return undefined;
    if (spec !== first && encodeSpec(spec) !== written) return undefined;
    if (spec.group !== undefined || spec.reservation > 0) return undefined;
  }
  if (!arePlain(jobs)) return undefined;
  return [
    textList(jobs.map(({ id }) => id)),
    textList(jobs.map(({ payload }) => payload as string)),
    written || null,
    json(storedTraits(first) ?? null),
  ];
}

/** The other queues to which jobs refer. */
export function otherQueues(queue: string, jobs: readonly NewJob[]): string[] {
  const others = new Set<string>();
  for (const { spec } of jobs) {
    for (const need of spec.needs ?? []) others.add(need.queue);
    if (spec.parent) others.add(spec.parent.queue);
    if (spec.batch) others.add(spec.batch.queue);
  }
  others.delete(queue);
  return [...others];
}
