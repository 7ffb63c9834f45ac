/**
 * The token of a lease: attempt (0 for a raw task), row number, and the row's own token, which is the number of claims before it and a nonce.
 */
export function makeToken(attempt: number, n: number, own: string): string {
  return `${attempt}.${n}.${own}`;
}

export interface TokenParts {
  attempt: number;
  n: number;
  own: string;
  claim: number;
}

/** The parts of a token; of one that is not ours, parts that no row has. */
export function splitToken(token: string): TokenParts {
  const match = /^(\d{1,9})\.(\d{1,15})\.((\d{1,15})\..+)$/s.exec(token);
  if (!match) return { attempt: -1, n: -1, own: '', claim: 0 };
  return { attempt: Number(match[1]), n: Number(match[2]), own: match[3]!, claim: Number(match[4]) };
}
