import { DEFAULT_BACKOFF } from './backoff.js';
import type { Keep, Spec } from './job.js';

const DAY = 86_400_000;
const DONE: Keep = Object.freeze({ ms: 3_600_000, count: 1_000 });
const DEAD: Keep = Object.freeze({ ms: 30 * DAY, count: 100_000 });

/** The options of a job by default: shared and frozen, so that a plain job needs no object of its own. */
export const DEFAULT_SPEC: Spec = Object.freeze({
  attempts: 5,
  backoff: DEFAULT_BACKOFF,
  reservation: 0,
  expires: 0,
  keep: Object.freeze({ done: DONE, dead: DEAD }),
});

const NOTHING: Keep = Object.freeze({ ms: 0, count: 0 });

/** A plain job that is removed when done: common enough to be shared and stored as cheaply as the default. */
export const FORGETFUL_SPEC: Spec = Object.freeze({
  ...DEFAULT_SPEC,
  keep: Object.freeze({ done: NOTHING, dead: DEAD }),
});

/** A plain job with an id chosen by its producer. */
export const NAMED_SPEC: Spec = Object.freeze({ ...DEFAULT_SPEC, idWindow: DONE.ms });

const FORGETFUL = '-';
const NAMED = '=';

/** What `attempts` is at most; with `retryFor` alone it stands for no limit. */
export const MOST_ATTEMPTS = 1_000_000;

/** `3 of 5`, or `3` if there is no limit. */
export function attemptText(attempt: number, attempts: number): string {
  return attempts >= MOST_ATTEMPTS ? String(attempt) : `${attempt} of ${attempts}`;
}

/** The shared object for a spec with the same options, if there is one. */
export function sharedSpec(spec: Spec): Spec {
  const { attempts, backoff, reservation, expires, retryFor, keep, headers, group, unique, needs, raw, idWindow } =
    spec;
  const plain = attempts === DEFAULT_SPEC.attempts && backoff === DEFAULT_BACKOFF && keep.dead === DEAD;
  if (!plain || reservation || expires || retryFor !== undefined || headers || group || unique || needs || raw)
    return spec;
  if (isRelated(spec)) return spec;
  if (idWindow !== undefined) return keep.done === DONE && idWindow === DONE.ms ? NAMED_SPEC : spec;
  if (keep.done === DONE) return DEFAULT_SPEC;
  return keep.done.count === 0 || keep.done.ms === 0 ? FORGETFUL_SPEC : spec;
}

/** It belongs to other jobs, which its end concerns. */
export function isRelated({ parent, batch, batchPolicy }: Spec): boolean {
  return parent !== undefined || batch !== undefined || batchPolicy !== undefined;
}

/** The stored form: only what differs from the defaults, or an empty string. */
export function encodeSpec(spec: Spec): string {
  if (spec === DEFAULT_SPEC) return '';
  if (spec === FORGETFUL_SPEC) return FORGETFUL;
  if (spec === NAMED_SPEC) return NAMED;
  const known = WRITTEN.get(spec);
  if (known !== undefined) return known;
  const text = writeSpec(spec);
  // a frozen spec is shared by many jobs, and will be needed again
  if (Object.isFrozen(spec)) WRITTEN.set(spec, text);
  return text;
}

const WRITTEN = new WeakMap<Spec, string>();

function writeSpec(spec: Spec): string {
  const { attempts, backoff, reservation, expires, keep, ...rest } = spec;
  const differing = {
    attempts: attempts === DEFAULT_SPEC.attempts ? undefined : attempts,
    backoff: backoff === DEFAULT_BACKOFF ? undefined : backoff,
    reservation: reservation || undefined,
    expires: expires || undefined,
    keep: keep === DEFAULT_SPEC.keep ? undefined : keep,
    ...rest,
  };
  const text = JSON.stringify(differing);
  return text === '{}' ? '' : text;
}

/** Cache of parsed specs: many jobs have the same options, and parsing JSON costs more than a lookup. */
const READ = new Map<string, Spec>();
const MOST_READ = 256;
const LONGEST_READ = 256;

export function decodeSpec(text: string): Spec {
  if (text === '') return DEFAULT_SPEC;
  if (text === FORGETFUL) return FORGETFUL_SPEC;
  if (text === NAMED) return NAMED_SPEC;
  if (text.length > LONGEST_READ) return parseSpec(text);
  const known = READ.get(text);
  if (known) return known;
  if (READ.size >= MOST_READ) READ.clear();
  const spec = Object.freeze(parseSpec(text));
  READ.set(text, spec);
  return spec;
}

function parseSpec(text: string): Spec {
  return { ...DEFAULT_SPEC, ...(JSON.parse(text) as Partial<Spec>) };
}

/** How long the record of a job with this final state is kept. */
export function keepOf(spec: Spec, state: 'done' | 'dead' | 'cancelled'): Keep {
  return state === 'dead' ? spec.keep.dead : spec.keep.done;
}
