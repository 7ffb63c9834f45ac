import { create } from '@bufbuild/protobuf';
import type { ChildList } from '../../job/children.js';
import type { Backoff, BatchPolicy, JobRef, Keep, Need, Spec, UniqueMode, UniqueScope } from '../../job/job.js';
import { DEFAULT_SPEC, sharedSpec } from '../../job/spec.js';
import * as pb from '../../proto/crore/v1/job_pb.js';
import { fromMs, toMs } from './times.js';

/** The options of a job as a message, and back. */

function fromBackoff(backoff: Backoff): pb.Backoff {
  switch (backoff.kind) {
    case 'fixed':
      return create(pb.BackoffSchema, { kind: { case: 'fixed', value: { delay: fromMs(backoff.delay) } } });
    case 'exponential': {
      const { delay, factor, cap, jitter } = backoff;
      const value = { delay: fromMs(delay), factor, cap: fromMs(cap), jitter };
      return create(pb.BackoffSchema, { kind: { case: 'exponential', value } });
    }
    case 'quartic': {
      const value = { base: fromMs(backoff.base), jitter: fromMs(backoff.jitter), cap: fromMs(backoff.cap) };
      return create(pb.BackoffSchema, { kind: { case: 'quartic', value } });
    }
  }
}

/** In the form of the library's options, which fill in defaults for absent values. */
export function toBackoff({ kind }: pb.Backoff): Backoff | undefined {
  switch (kind.case) {
    case 'fixed':
      return { kind: 'fixed', delay: toMs(kind.value.delay) ?? 0 };
    case 'exponential': {
      const { delay, factor, cap, jitter } = kind.value;
      return {
        kind: 'exponential',
        delay: toMs(delay) ?? 1_000,
        factor: factor === 0 ? 2 : factor,
        cap: toMs(cap) ?? 3_600_000,
        jitter,
      };
    }
    case 'quartic': {
      const { base, jitter, cap } = kind.value;
      return {
        kind: 'quartic',
        base: toMs(base) ?? 15_000,
        jitter: toMs(jitter) ?? 30_000,
        cap: toMs(cap) ?? 30 * 86_400_000,
      };
    }
    default:
      return undefined;
  }
}

function fromKeep({ ms, count }: Keep): pb.Keep {
  return create(pb.KeepSchema, { time: fromMs(ms), count: BigInt(count) });
}

function toKeep(keep: pb.Keep | undefined, fallback: Keep): Keep {
  if (!keep) return fallback;
  return {
    ms: toMs(keep.time) ?? fallback.ms,
    count: keep.count === undefined ? fallback.count : Number(keep.count),
  };
}

export const MODES: readonly (UniqueMode | undefined)[] = [undefined, 'keep', 'extend', 'replace'];
export const SCOPES: readonly (UniqueScope | undefined)[] = [undefined, 'waiting', 'alive', 'window'];

/** Only the values that differ from the defaults; undefined for a job with default options. */
export function fromSpec(spec: Spec): pb.JobOptions | undefined {
  if (spec === DEFAULT_SPEC) return undefined;
  const { attempts, backoff, reservation, expires, retryFor, keep, headers, group, unique, needs, raw, idWindow } =
    spec;
  const { parent, batch, batchPolicy } = spec;
  return create(pb.JobOptionsSchema, {
    attempts: attempts === DEFAULT_SPEC.attempts ? undefined : attempts,
    backoff: backoff === DEFAULT_SPEC.backoff ? undefined : fromBackoff(backoff),
    reservation: reservation > 0 ? fromMs(reservation) : undefined,
    expires: expires > 0 ? fromMs(expires) : undefined,
    keep: keep.done === DEFAULT_SPEC.keep.done ? undefined : fromKeep(keep.done),
    keepDead: keep.dead === DEFAULT_SPEC.keep.dead ? undefined : fromKeep(keep.dead),
    headers: headers ?? {},
    unique: unique && {
      key: unique.key,
      scope: SCOPES.indexOf(unique.scope),
      ttl: unique.ttl > 0 ? fromMs(unique.ttl) : undefined,
      mode: MODES.indexOf(unique.mode),
    },
    group,
    needs: needs?.map(fromNeed),
    parent,
    batch,
    batchPolicy: POLICIES.indexOf(batchPolicy),
    raw: raw === true,
    idWindow: idWindow === undefined ? undefined : fromMs(idWindow),
    retryFor: retryFor === undefined ? undefined : fromMs(retryFor),
  });
}

/** For a job from a store: its options were validated when it was added. */
export function toSpec(options: pb.JobOptions | undefined, queue: string): Spec {
  if (!options) return DEFAULT_SPEC;
  const { attempts, backoff, reservation, expires, headers, group, unique, needs, raw } = options;
  const done = toKeep(options.keep, DEFAULT_SPEC.keep.done);
  const dead = toKeep(options.keepDead, DEFAULT_SPEC.keep.dead);
  const kept = done === DEFAULT_SPEC.keep.done && dead === DEFAULT_SPEC.keep.dead;
  return sharedSpec({
    attempts: attempts ?? DEFAULT_SPEC.attempts,
    backoff: (backoff && toBackoff(backoff)) ?? DEFAULT_SPEC.backoff,
    reservation: toMs(reservation) ?? 0,
    expires: toMs(expires) ?? 0,
    keep: kept ? DEFAULT_SPEC.keep : { done, dead },
    headers: Object.keys(headers).length > 0 ? headers : undefined,
    group: group === '' ? undefined : group,
    unique: unique && toUnique(unique),
    needs: needs.length > 0 ? needs.map((need) => toNeed(need, queue)) : undefined,
    raw: raw || undefined,
    idWindow: toMs(options.idWindow),
    ...(options.retryFor ? { retryFor: toMs(options.retryFor)! } : {}),
    ...relationsOf(options, queue),
  });
}

/** The jobs it belongs to. */
export function relationsOf(
  { parent, batch, batchPolicy }: pb.JobOptions,
  own: string,
): Pick<Spec, 'parent' | 'batch' | 'batchPolicy'> {
  return {
    ...(parent ? { parent: toRef(parent, own) } : {}),
    ...(batch ? { batch: toRef(batch, own) } : {}),
    ...(POLICIES[batchPolicy] ? { batchPolicy: POLICIES[batchPolicy] } : {}),
  };
}

export function toRef({ queue, id }: pb.JobRef, own: string): JobRef {
  return { queue: queue === '' ? own : queue, id };
}

export const POLICIES: readonly (BatchPolicy | undefined)[] = [undefined, 'finished', 'failure'];

function fromNeed({ queue, id, on }: Need): pb.Need {
  const policy = on === 'finished' ? pb.NeedPolicy.FINISHED : pb.NeedPolicy.SUCCESS;
  return create(pb.NeedSchema, { queue, id, on: policy });
}

export function fromChildren({ first, children }: ChildList): pb.Children {
  return create(pb.ChildrenSchema, { first, children: children.map(fromNeed) });
}

export function toChildren(list: pb.Children | undefined, own: string): ChildList {
  return { first: list?.first ?? 0, children: list?.children.map((child) => toNeed(child, own)) ?? [] };
}

function toUnique({ key, scope, ttl, mode }: pb.Unique): NonNullable<Spec['unique']> {
  const unique = { key, scope: SCOPES[scope] ?? 'alive', ttl: toMs(ttl) ?? 0 };
  return MODES[mode] === undefined ? unique : { ...unique, mode: MODES[mode] };
}

function toNeed({ queue, id, on }: pb.Need, own: string): NonNullable<Spec['needs']>[number] {
  return { queue: queue === '' ? own : queue, id, on: on === pb.NeedPolicy.FINISHED ? 'finished' : 'success' };
}
