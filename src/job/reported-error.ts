/**
 * A job that waits for its retry because its failure was reported is `answered`: later reports about that delivery are
 * ignored. Stores keep this flag as the first character of the stored error, which the next delivery removes.
 */
const MARK = '\x01';

export function storedError(error: string | undefined, answered: boolean | undefined): string | undefined {
  return answered ? `${MARK}${error ?? ''}` : error;
}

export function readError(stored: string): { error: string; answered?: true } {
  return stored.startsWith(MARK) ? { error: stored.slice(1), answered: true } : { error: stored };
}
