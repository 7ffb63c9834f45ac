import type { Command } from 'commander';
import { checkOneOf } from '../../engine/check.js';
import { STATES, type State } from '../../job/job.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { program } from '../program.js';
import {
  actOn,
  CANCEL,
  checkIds,
  complain,
  filterOf,
  type ListOptions,
  limitOf,
  listable,
  listJobs,
  missing,
  REMOVE,
  RETRY,
  type Verb,
} from './job-actions.js';
import { jobObject, showJob } from './job-view.js';

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore job',
    summary: 'Look at single jobs of a queue, and act on them.',
    examples: [
      ['crore job show mails order-17', 'everything about it'],
      ['crore job ls mails --state ready', 'who is next'],
      ['crore job cancel mails order-17 order-18', 'also while they run'],
    ],
  });
  action(listing(command), list);
  const show = subcommand(command, 'show <queue> <id...>', {
    summary: 'Show everything about jobs.',
    examples: [
      ['crore job show mails order-17', 'for people'],
      ['crore job show mails order-17 --json | jq .payload', 'for programs'],
    ],
  });
  action(show, showAll);
  verb(command, 'retry', RETRY, 'Send dead jobs to the back of the queue, with fresh attempts.');
  verb(command, 'cancel', CANCEL, 'Cancel jobs that have not ended; a running one is told to stop.');
  verb(command, 'rm', REMOVE, 'Forget jobs that have ended.');
  return answer(command, argv);
}

function listing(parent: Command): Command {
  const command = subcommand(parent, 'ls <queue>', {
    summary: 'List jobs: waiting ones in the order they will run, ended ones newest first.',
    examples: [
      ['crore job ls mails', 'all states, the first 100'],
      ['crore job ls mails --state scheduled --limit 10', 'what is due next'],
      [
        'crore job ls mails --state done,cancelled --match ada --all',
        'every one with this in payload, error or header',
      ],
    ],
  });
  return listable(command.option('--state <states>', `Some of ${STATES.join(',')} (default: all).`));
}

async function list(name: string, options: StoreOptions & ListOptions & { state?: string }): Promise<number> {
  checkIds(name, []);
  const asked = options.state === undefined ? STATES : options.state.split(',');
  const states: State[] = asked.map((state) => checkOneOf(state, '--state', STATES));
  const [limit, filter] = [limitOf(options), filterOf(options)];
  return withStore(options, async ({ crore, out }) => {
    await listJobs(out, crore.queue(name), states, limit, filter);
    return 0;
  });
}

async function showAll(name: string, ids: string[], options: StoreOptions): Promise<number> {
  checkIds(name, ids);
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    let shown = 0;
    for (const id of ids) {
      const job = await queue.get(id);
      if (!job) {
        complain(missing(name, id));
        continue;
      }
      if (!out.json && shown > 0) out.write('');
      shown += 1;
      if (out.json) out.say(jobObject(job), '');
      else showJob(out, job);
    }
    return shown === ids.length ? 0 : 1;
  });
}

function verb(parent: Command, name: string, what: Verb, summary: string): void {
  const command = subcommand(parent, `${name} <queue> <id...>`, {
    summary: `${summary} Exit code 1 when one of them was left alone.`,
    examples: [
      [`crore job ${name} mails order-17`, what.done],
      [`crore job ${name} mails order-17 order-18 --json`, 'an object a line for each'],
    ],
  });
  action(command, async (queue: string, ids: string[], options: StoreOptions) => {
    checkIds(queue, ids);
    return withStore(options, ({ crore, out }) => actOn(out, crore.queue(queue), ids, what));
  });
}
