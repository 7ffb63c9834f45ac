import type { Command } from 'commander';
import { CroreError } from '../../errors.js';
import type { BulkOptions, Filter, Queue } from '../../index.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { program } from '../program.js';
import {
  actOn,
  checkIds,
  type FilterOptions,
  filterable,
  filterOf,
  type ListOptions,
  limitOf,
  listable,
  listJobs,
  REMOVE,
  RETRY,
  type Verb,
} from './job-actions.js';

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore dead',
    summary: 'The dead letters of a queue: jobs that used up their attempts, or whose handler gave up.',
    examples: [
      ['crore dead ls mails', 'what failed, and why'],
      ['crore dead retry mails --all', 'all of them again'],
      ['crore dead rm mails --match "no such user"', 'forget those'],
    ],
  });
  action(listing(command), list);
  bulk(command, 'retry', RETRY, 'Send dead jobs to the back of the queue, with fresh attempts.', (queue, filter, how) =>
    queue.retryDead(filter, how),
  );
  bulk(command, 'rm', REMOVE, 'Forget dead jobs.', (queue, filter, how) =>
    queue.remove({ ...filter, state: 'dead' }, how),
  );
  return answer(command, argv);
}

function listing(parent: Command): Command {
  const command = subcommand(parent, 'ls <queue>', {
    summary: 'List dead jobs, newest first.',
    examples: [
      ['crore dead ls mails', 'the latest 100'],
      ['crore dead ls mails --match timeout --all', 'every one with this in payload, error or header'],
    ],
  });
  return listable(command);
}

async function list(name: string, options: StoreOptions & ListOptions): Promise<number> {
  checkIds(name, []);
  const [limit, filter] = [limitOf(options), filterOf(options)];
  return withStore(options, async ({ crore, out }) => {
    await listJobs(out, crore.queue(name), ['dead'], limit, filter);
    return 0;
  });
}

type BulkVerb = (queue: Queue, filter: Filter, how: BulkOptions) => Promise<number>;

function bulk(parent: Command, name: string, verb: Verb, summary: string, all: BulkVerb): void {
  const command = subcommand(parent, `${name} <queue> [id...]`, {
    summary: `${summary} These, those that match, or all.`,
    examples: [
      [`crore dead ${name} mails order-17`, 'this one'],
      [`crore dead ${name} mails --match timeout`, 'those with this in payload, error or header'],
      [`crore dead ${name} mails --all`, 'every one'],
    ],
  });
  filterable(command).option('--all', 'Every dead job of the queue.');
  action(command, async (queue: string, ids: string[], options: StoreOptions & FilterOptions & { all?: boolean }) => {
    checkIds(queue, ids);
    const filter = filterOf(options);
    checkChoice(ids, filter, options.all === true, name);
    return withStore(options, async ({ crore, out }) => {
      if (ids.length > 0) return actOn(out, crore.queue(queue), ids, deadOnly(verb));
      const count = await all(crore.queue(queue), filter, {});
      out.say({ queue, [verb.done]: count }, `${count} ${verb.done}`);
      return 0;
    });
  });
}

/** Requires exactly one of ids, a filter, or all, so that nobody selects all by accident. */
function checkChoice(ids: readonly string[], filter: object, all: boolean, name: string): void {
  const ways = [ids.length > 0, Object.keys(filter).length > 0, all].filter(Boolean).length;
  if (ways === 0)
    throw new CroreError('BAD_OPTION', `dead ${name}: which? Give ids, a filter such as --match, or --all`);
  if (ways > 1) throw new CroreError('BAD_OPTION', `dead ${name}: give ids, a filter, or --all, not several of them`);
}

/** Restricts a command to dead jobs, even if it could act on others. */
function deadOnly(verb: Verb): Verb {
  return {
    ...verb,
    refusal: 'it is not dead',
    act: async (queue, id) => (await queue.get(id))?.state === 'dead' && verb.act(queue, id),
  };
}
