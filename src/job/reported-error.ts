/**
 * A job that waits for its retry because somebody reported its failure is `answered`: no later report about that delivery
 * counts. Stores keep the bit as the first character of the stored error, which the next delivery drops.
 */
const MARK = '\x01';

export function storedError(error: string | undefined, answered: boolean | undefined): string | undefined {
  return answered ? `${MARK}${error ?? ''}` : error;
}

export function readError(stored: string): { error: string; answered?: true } {
  return stored.startsWith(MARK) ? { error: stored.slice(1), answered: true } : { error: stored };
}
