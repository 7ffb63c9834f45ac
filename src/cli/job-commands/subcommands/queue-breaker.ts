import type { Command } from 'commander';
import { checkName } from '../../../engine/input/check.js';
import { CroreError } from '../../../errors.js';
import type { BreakerOptions, BreakerView } from '../../../index.js';
import { shortDuration } from '../../../job/short-duration.js';
import { action, type StoreOptions, subcommand, withStore } from '../../action.js';
import { duration, whole } from '../../option-values.js';
import { printable } from '../../output.js';

interface Asked extends StoreOptions {
  failures?: string;
  pause?: string;
  none?: boolean;
}

/** `crore queue breaker`: shows, sets or removes the breaker of a queue. */
export function addBreaker(parent: Command): void {
  const command = subcommand(parent, 'breaker <queue>', {
    summary: 'Show, set or remove the breaker of a queue, which stops it after failures in a row.',
    examples: [
      ['crore queue breaker mails', 'show it'],
      ['crore queue breaker mails --failures 20 --pause 1m', 'after 20 failures in a row, start nothing for a minute'],
      ['crore queue breaker mails --none', 'remove it'],
      ['crore queue resume mails', 'close it by hand'],
    ],
  })
    .option('--failures <n>', 'Open it after this many failed attempts in a row.')
    .option('--pause <time>', 'Start nothing for this long, then let one job try.')
    .option('--none', 'Remove it.');
  action(command, breaker);
}

async function breaker(name: string, options: Asked): Promise<number> {
  checkName(name, 'queue name');
  const asked = resolve(options);
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    if (asked !== undefined) await queue.setBreaker(asked);
    else if (!(await crore.queues()).includes(name)) throw new CroreError('NOT_FOUND', `no queue '${printable(name)}'`);
    const found = await queue.breaker();
    out.say({ queue: name, ...found }, `${printable(name)}  ${found ? shown(found) : 'no breaker'}`);
    return 0;
  });
}

/** The new breaker, null for none, or undefined when nothing was asked for. */
function resolve({ failures, pause, none }: Asked): BreakerOptions | null | undefined {
  const most = whole(failures, '--failures', 1, 1_000_000);
  const ms = duration(pause, '--pause');
  const some = most !== undefined || ms !== undefined;
  if (none && some) throw new CroreError('BAD_OPTION', 'give --none or a breaker, not both');
  if (!some) return none ? null : undefined;
  if (most === undefined || ms === undefined)
    throw new CroreError('BAD_OPTION', 'a breaker needs --failures and --pause');
  if (ms < 1) throw new CroreError('BAD_OPTION', '--pause must be at least a millisecond');
  return { failures: most, pause: ms };
}

function shown({ failures, pause, failed, until }: BreakerView): string {
  const rule = `after ${failures} failures in a row, nothing for ${shortDuration(pause)}`;
  return `${rule}; ${until ? `open until ${until.toISOString()}` : `closed, ${failed} failed`}`;
}
