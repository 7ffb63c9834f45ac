import { checkInteger, checkOptions, describe } from '../engine/input/check.js';
import { type AddOptions, resolveJob } from '../engine/input/options.js';
import { encodeValue } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import type { NewJob } from '../job/job.js';

export interface OutboxOptions {
  /** Maximum payload in bytes; default 1 MiB. */
  maxPayload?: number;
}

/** The options of `add`, except `needs`: by the time a job is sent, its upstream jobs may have been removed. */
export type OutboxAddOptions = Omit<AddOptions, 'needs'>;

/** A job to be sent: it exists once the transaction is committed, and is in its queue shortly after. */
export interface Outgoing {
  queue: string;
  id: string;
}

/** Returns the maximum payload. */
export function checkOutboxOptions(options: OutboxOptions): number {
  checkOptions(options, ['maxPayload'], 'openOutbox');
  return options.maxPayload === undefined ? 1_048_576 : checkInteger(options.maxPayload, 'maxPayload', 1);
}

export function resolveOutgoing(
  queue: string,
  payload: unknown,
  options: OutboxAddOptions | undefined,
  { now, maxPayload }: { now: number; maxPayload: number },
): NewJob {
  if ((options as AddOptions | undefined)?.needs !== undefined) {
    throw new CroreError(
      'BAD_OPTION',
      `outbox: a job cannot have 'needs': those jobs may be removed before it is sent`,
    );
  }
  if (options !== undefined && (options === null || typeof options !== 'object')) {
    throw new CroreError('BAD_OPTION', `add must be an object, not ${describe(options)}`);
  }
  const body = encodeValue(payload, `payload for queue '${queue}'`, maxPayload);
  return resolveJob(queue, body, options, now);
}
