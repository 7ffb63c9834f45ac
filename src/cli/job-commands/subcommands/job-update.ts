import type { Command } from 'commander';
import type { UpdateOptions } from '../../../engine/input/options.js';
import { CroreError } from '../../../errors.js';
import { type StoreOptions, subcommand, withStore } from '../../action.js';
import { duration, notBoth, time, whole } from '../../option-values.js';
import { actOn, byUser, checkIds, ifWaiting } from '../job-actions.js';
import { argumentBytes, given, readPayload, readText } from '../job-options.js';

interface UpdateLine extends StoreOptions {
  payload?: string;
  text?: boolean;
  priority?: string;
  delay?: string;
  at?: string;
}

/** `crore job update`: changes jobs that have not started. */
export function updating(parent: Command): Command {
  return subcommand(parent, 'update <queue> <id...>', {
    summary:
      'Change jobs that have not started: payload, priority or time. A new priority or time moves them to the back. Exits with 1 if one of them was not changed.',
    examples: [
      [`crore job update mails order-17 --payload '{"to":"bob"}'`, 'another payload'],
      ['crore job update mails order-17 --priority 10', 'ahead of the others'],
      ['crore job update mails order-17 order-18 --delay 1h', 'not before in an hour'],
    ],
  })
    .option('--payload <json>', 'The new payload: JSON if it parses, else text.')
    .option('--text', 'Treat the payload as text, even if it looks like JSON.')
    .option('--priority <n>', 'Higher runs first.')
    .option('--delay <time>', "Delay before the job may start, such as '10s', '5m', '2h'.")
    .option('--at <time>', 'Earliest start, as an ISO time.');
}

export async function update(name: string, ids: string[], options: UpdateLine): Promise<number> {
  checkIds(name, ids);
  const changes = changesOf(options);
  const verb = { done: 'changed', refusal: 'it has started or ended' };
  return withStore(options, ({ crore, out }) =>
    actOn(out, crore.queue(name), ids, {
      ...verb,
      act: (queue, id) => ifWaiting(queue.update(id, changes, { by: byUser() })),
    }),
  );
}

function changesOf(options: UpdateLine): UpdateOptions & { payload?: unknown } {
  notBoth(options, 'delay', 'at');
  const changes = given({
    priority: whole(options.priority, '--priority', -1_000_000, 1_000_000),
    delay: duration(options.delay, '--delay'),
    at: time(options.at, '--at'),
  });
  if (options.payload !== undefined) {
    const bytes = argumentBytes(options.payload);
    return { ...changes, payload: options.text ? readText(bytes) : readPayload(bytes, '--payload') };
  }
  if (Object.keys(changes).length === 0)
    throw new CroreError('BAD_OPTION', 'job update: nothing to change: give --payload, --priority, --delay or --at');
  return changes;
}
