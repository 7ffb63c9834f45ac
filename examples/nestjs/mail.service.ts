import { Injectable } from '@nestjs/common';
import type { Handle, Queue } from 'crore';
import { InjectQueue } from 'crore/nestjs';
import type { Mail } from './mailer.js';

@Injectable()
export class MailService {
  constructor(@InjectQueue('mails') private readonly mails: Queue<Mail, string>) {}

  welcome(to: string): Promise<Handle<Mail, string>> {
    return this.mails.add({ to }, { unique: `welcome ${to}` });
  }
}
