import { CallHost, type CallRunner } from './call-host.js';
import type { HostCommand, ReplyMessage } from './messages.js';

/** Makes this process one that runs the calls of its parent. The channel to it keeps this process alive. */
export async function hostCalls(runner: CallRunner): Promise<void> {
  const host = new CallHost(runner, (reply) => {
    if (!process.connected) return undefined;
    return new Promise((resolve) => {
      process.send!({ crore: reply } satisfies ReplyMessage, () => resolve());
    });
  });
  // Without the channel there is nothing left to do.
  process.on('disconnect', () => process.exit(0));
  process.on('message', (commands) => host.obey(commands as HostCommand[]));
  await host.load();
}
