import { Module } from '@nestjs/common';
import { CroreModule } from 'crore/nestjs';
import { MailProcessor } from './mail.processor.js';
import { MailService } from './mail.service.js';
import { Mailer } from './mailer.js';

@Module({
  imports: [CroreModule.forRoot({ url: process.env.CRORE_STORE }), CroreModule.registerQueue('mails')],
  providers: [Mailer, MailService, MailProcessor],
})
export class AppModule {}
