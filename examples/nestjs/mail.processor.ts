import type { ActiveJob } from 'crore';
import { type JobProcessor, Processor } from 'crore/nestjs';
import { type Mail, Mailer } from './mailer.js'; // a value: Nest finds what to inject by its class

@Processor('mails', { concurrency: 5, grace: '5s' })
export class MailProcessor implements JobProcessor<Mail, string> {
  constructor(private readonly mailer: Mailer) {}

  process(job: ActiveJob<Mail>): Promise<string> {
    return this.mailer.send(job.payload, job.signal);
  }
}
