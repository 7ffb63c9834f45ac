import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { MailService } from './mail.service.js';

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  app.enableShutdownHooks(); // SIGTERM and SIGINT close the workers, then the connection
  const mails = app.get(MailService);
  for (const to of ['ada', 'bob', 'cid']) {
    const mail = await mails.welcome(to);
    console.log(await mail.finished({ timeout: '10s' }));
  }
  console.log('ready'); // goes on working until it is told to stop
}

void main();
