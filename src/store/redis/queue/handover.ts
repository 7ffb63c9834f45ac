import { CroreError } from '../../../errors.js';
import type { Arg, ScriptReply } from '../connection/client.js';

/** A claim of a worker in this process, made because something is being added. */
export interface WaitingClaim {
  args: Arg[];
  /** How many entries it asks for. */
  count: number;
  /** Sends it by itself. */
  send(): void;
  answer(reply: ScriptReply): void;
  /** It may have been carried out, but the answer was lost. */
  lose(): void;
  /** What it was sent with has failed. */
  fail(error: Error): void;
}

interface Offer {
  queue: string;
  args: Arg[];
  count: number;
  send: () => Promise<ScriptReply>;
}

/** These leave open whether the script has run; after any other failure nothing has changed, and the claim is made by itself. */
const UNCLEAR: readonly string[] = ['STORE_UNCERTAIN', 'STORE_UNREACHABLE', 'CLOSED'];

/** Brings together an add and the claims of workers in this process that wait for it, so that one script can do both. */
export class Handover {
  #queue: string | undefined;
  #claims: WaitingClaim[] = [];

  /** The claims on a queue that are made while `nudge` runs; they are not sent. */
  collect(queue: string, nudge: () => void): WaitingClaim[] {
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
  offer({ queue, args, count, send }: Offer): Promise<ScriptReply> | undefined {
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
