import { isCroreError } from '../../errors.js';

type Listener = (error: Error, what: string) => void;

/** After this long without an error, the next one belongs to another outage. */
const QUIET = 15_000;

/** What lasts until somebody does something: every call fails with it. */
const OUTAGES = new Set<string>(['STORE_UNREACHABLE', 'STORE_GONE']);

/**
 * Passes on one error per outage of the store: every background task notices that it is out of reach or gone, and one line says it. A reply
 * that was lost when the connection broke is not worth a line of its own: the worker finds out what happened by itself.
 */
export function oncePerOutage(listener: Listener): Listener {
  let lastAt = Number.NEGATIVE_INFINITY;
  return (error, what) => {
    if (!isCroreError(error)) return listener(error, what);
    if (error.code === 'STORE_UNCERTAIN') return;
    if (!OUTAGES.has(error.code)) return listener(error, what);
    const now = performance.now();
    const isNew = now - lastAt > QUIET;
    lastAt = now;
    if (isNew) listener(error, what);
  };
}
