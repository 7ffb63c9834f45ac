import { CroreError } from '../errors.js';

/** A claim of a worker in this process, made because something is being added. `A` are its arguments, `R` is the answer of the store. */
export interface WaitingClaim<A, R> {
  args: A;
  /** How many entries it asks for. */
  count: number;
  /** Sends it by itself. */
  send(): void;
  answer(reply: R): void;
  /** It may have been carried out, but the answer was lost. */
  lose(): void;
  /** What it was sent with has failed. */
  fail(error: Error): void;
}

interface Offer<A, R> {
  queue: string;
  args: A;
  count: number;
  send: () => Promise<R>;
}

/** These leave open whether the call has been carried out; after any other failure nothing has changed, and the claim is made by itself. */
const UNCLEAR: readonly string[] = ['STORE_UNCERTAIN', 'STORE_UNREACHABLE', 'CLOSED'];

/** Brings together an add and the claims of workers in this process that wait for it, so that one call can do both. */
export class Handover<A, R> {
  #queue: string | undefined;
  #claims: WaitingClaim<A, R>[] = [];

  /** The claims on a queue that are made while `nudge` runs; they are not sent. */
  collect(queue: string, nudge: () => void): WaitingClaim<A, R>[] {
    this.#queue = queue;
    try {
      nudge();
    } finally {
      this.#queue = undefined;
    }
    const claims = this.#claims;
    if (claims.length > 0) this.#claims = [];
    return claims;
  }

  /** The answer to a claim if an add is waiting for it. */
  offer({ queue, args, count, send }: Offer<A, R>): Promise<R> | undefined {
    if (queue !== this.#queue) return undefined;
    return new Promise((resolve, reject) => {
      this.#claims.push({
        args,
        count,
        send: () => resolve(send()),
        answer: resolve,
        lose: () => reject(new CroreError('STORE_UNCERTAIN', `claim from queue '${queue}': the reply was lost`)),
        fail: (error) => {
          if (error instanceof CroreError && !UNCLEAR.includes(error.code)) resolve(send());
          else reject(error);
        },
      });
    });
  }
}
