import { parentPort, workerData } from 'node:worker_threads';
import { CallHost } from '../call-host.js';
import type { HostCommand, ReplyMessage } from '../messages.js';
import type { HandlerSetup } from './handler-messages.js';
import { HandlerRunner } from './handler-runner.js';

/** The program of a thread that runs a handler. A message has left as soon as it is posted. */
const host = new CallHost(new HandlerRunner(workerData as HandlerSetup), (reply) =>
  parentPort!.postMessage({ crore: reply } satisfies ReplyMessage),
);
parentPort!.on('message', (commands: HostCommand[]) => {
  // Only the thread ends, between two calls of its code: ending it from outside may break into a call of a native module.
  if (commands.some((command) => 'end' in command)) process.exit(0);
  host.obey(commands);
});
await host.load();
