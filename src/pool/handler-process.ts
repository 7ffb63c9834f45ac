import { HandlerHost } from './handler-host.js';
import type { HostCommand, HostReply, HostSetup, ReplyMessage } from './messages.js';

/** The program of a process that runs a handler. The channel to its worker keeps it alive; without it there is nothing left to do. */
process.on('disconnect', () => process.exit(0));

const send = (reply: HostReply) => {
  if (process.connected) process.send!({ crore: reply } satisfies ReplyMessage);
};
const host = new HandlerHost(JSON.parse(process.argv[2]!) as HostSetup, send);
process.on('message', (command) => host.obey(command as HostCommand));
await host.load();
