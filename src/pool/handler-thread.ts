import { parentPort, workerData } from 'node:worker_threads';
import { HandlerHost } from './handler-host.js';
import type { HostCommand, HostReply, HostSetup, ReplyMessage } from './messages.js';

/** The program of a thread that runs a handler. */
const send = (reply: HostReply) => parentPort!.postMessage({ crore: reply } satisfies ReplyMessage);
const host = new HandlerHost(workerData as HostSetup, send);
parentPort!.on('message', (command: HostCommand) => {
  // Only the thread ends, between two calls of its code: ending it from outside may break into a call of a native module.
  if ('end' in command) process.exit(0);
  host.obey(command);
});
await host.load();
