import type { Command } from 'commander';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { program } from '../program.js';
import { bulk } from './bulk-actions.js';
import {
  checkIds,
  filterOf,
  type ListOptions,
  limitOf,
  listable,
  listJobs,
  REMOVE,
  RETRY,
  type Verb,
} from './job-actions.js';

const DEAD = { jobs: 'dead jobs', states: ['dead'] } as const;

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore dead',
    summary: 'List, retry and remove dead jobs: jobs that ran out of attempts or failed with a fatal error.',
    examples: [
      ['crore dead ls mails', 'list dead jobs with their errors'],
      ['crore dead retry mails --all', 'retry all of them'],
      ['crore dead rm mails --match "no such user"', 'remove those that match'],
    ],
  });
  action(listing(command), list);
  bulk(command, {
    ...DEAD,
    name: 'dead retry',
    summary: 'Move dead jobs to the back of the queue, with fresh attempts.',
    verb: deadOnly(RETRY),
    all: (queue, filter, how) => queue.retryDead(filter, how),
  });
  bulk(command, {
    ...DEAD,
    name: 'dead rm',
    summary: 'Remove dead jobs.',
    verb: deadOnly(REMOVE),
    all: (queue, filter, how) => queue.remove({ ...filter, state: 'dead' }, how),
  });
  return answer(command, argv);
}

function listing(parent: Command): Command {
  const command = subcommand(parent, 'ls <queue>', {
    summary: 'List dead jobs, newest first.',
    examples: [
      ['crore dead ls mails', 'the newest 100'],
      ['crore dead ls mails --match timeout --all', 'all with this text in payload, error or header'],
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

/** Restricts a command to dead jobs, even if it could act on others. */
function deadOnly(verb: Verb): Verb {
  return {
    ...verb,
    refusal: 'it is not dead',
    act: async (queue, id) => (await queue.get(id))?.state === 'dead' && verb.act(queue, id),
  };
}
