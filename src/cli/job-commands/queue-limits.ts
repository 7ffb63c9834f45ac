import type { Command } from 'commander';
import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { QueueLimitOptions } from '../../index.js';
import { shortDuration } from '../../job/short-duration.js';
import type { GroupLimits, QueueLimits } from '../../store/store.js';
import { action, type StoreOptions, subcommand, withStore } from '../action.js';
import { duration, whole } from '../option-values.js';
import { printable } from '../output.js';
import { given } from './job-options.js';

interface Asked extends StoreOptions {
  concurrency?: string;
  rate?: string;
  groupConcurrency?: string;
  groupRate?: string;
  groupOrdered?: boolean;
  none?: boolean;
}

/** `crore queue limits`: shows the limits of a queue, or replaces them as a whole. */
export function addLimits(parent: Command): void {
  const command = subcommand(parent, 'limits <queue>', {
    summary: 'Show or replace the limits of a queue. A limit that is not given is removed.',
    examples: [
      ['crore queue limits mails', 'show the limits'],
      ['crore queue limits mails --concurrency 20 --rate 100/1m', 'at most 20 at once, and 100 starts per minute'],
      ['crore queue limits mails --group-concurrency 1', 'one job of each group at a time'],
      ['crore queue limits mails --group-ordered', 'the next job of a group waits until the one before has ended'],
      ['crore queue limits mails --none', 'remove all limits'],
    ],
  })
    .option('--concurrency <n>', 'Maximum number of jobs that run at once.')
    .option('--rate <n/time>', "Maximum number of starts per interval, such as '100/1m'.")
    .option('--group-concurrency <n>', 'Maximum number of jobs of each group that run at once.')
    .option('--group-rate <n/time>', 'Maximum number of starts of each group per interval.')
    .option('--group-ordered', 'Start the next job of a group when the one before has ended for good.')
    .option('--none', 'Remove all limits.');
  action(command, limits);
}

async function limits(name: string, options: Asked): Promise<number> {
  checkName(name, 'queue name');
  const asked = resolve(options);
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    if (asked) await queue.setLimits(asked);
    else if (!(await crore.queues()).includes(name)) throw new CroreError('NOT_FOUND', `no queue '${printable(name)}'`);
    const holds = await queue.limits();
    out.say({ queue: name, ...holds }, `${printable(name)}  ${shown(holds)}`);
    return 0;
  });
}

/** The new limits, or undefined when none were given. */
function resolve(options: Asked): QueueLimitOptions | undefined {
  const group = given({
    concurrency: whole(options.groupConcurrency, '--group-concurrency', 1, 1_000_000),
    rate: rate(options.groupRate, '--group-rate'),
    ordered: options.groupOrdered,
  });
  if (group.ordered && group.concurrency !== undefined)
    throw new CroreError('BAD_OPTION', 'give --group-ordered or --group-concurrency, not both');
  const all = given({
    concurrency: whole(options.concurrency, '--concurrency', 1, 1_000_000),
    rate: rate(options.rate, '--rate'),
    group: Object.keys(group).length > 0 ? group : undefined,
  });
  const some = Object.keys(all).length > 0;
  if (options.none && some) throw new CroreError('BAD_OPTION', 'give --none or limits, not both');
  return options.none || some ? all : undefined;
}

function rate(text: string | undefined, what: string): QueueLimitOptions['rate'] {
  if (text === undefined) return undefined;
  const [, count, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  const ms = duration(per, what) ?? 0;
  if (ms < 1) throw new CroreError('BAD_OPTION', `${what} must be a rate such as 100/1m, not '${printable(text)}'`);
  return { count: whole(count, what, 1, 1_000_000_000)!, per: ms };
}

function shown({ concurrency, rate: starts, group }: QueueLimits): string {
  const parts = [...part({ concurrency, rate: starts }), ...part(group ?? {}).map((text) => `${text} per group`)];
  return parts.join(', ') || 'no limits';
}

function part({ concurrency, rate: starts, ordered }: GroupLimits): string[] {
  return [
    ...(concurrency === undefined ? [] : [`${concurrency} at once`]),
    ...(starts === undefined
      ? []
      : [`${starts.count} ${starts.count === 1 ? 'start' : 'starts'} per ${shortDuration(starts.per)}`]),
    ...(ordered ? ['in order'] : []),
  ];
}
