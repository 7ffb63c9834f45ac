import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

export interface Mail {
  to: string;
  /** How long the server of the receiver takes, in milliseconds. */
  takes?: number;
}

/** Stands for whatever sends mails. */
@Injectable()
export class Mailer {
  async send({ to, takes = 10 }: Mail, signal: AbortSignal): Promise<string> {
    await wait(takes, undefined, { signal });
    return `sent to ${to}`;
  }
}
