import { CroreError } from '../errors.js';

/** The answer to a claim was lost: the store may count entries as leased to its session whose tokens end with this mark. */
export class LostClaim extends CroreError {
  constructor(
    readonly mark: string,
    { message, cause }: CroreError,
  ) {
    super('STORE_UNCERTAIN', message, { cause });
  }
}

/** Makes a claim whose tokens end with the mark. */
export function markedClaim<T>(mark: string, claim: () => Promise<T>): Promise<T> {
  return claim().catch((error: unknown) => {
    throw error instanceof CroreError && error.code === 'STORE_UNCERTAIN' ? new LostClaim(mark, error) : error;
  });
}
