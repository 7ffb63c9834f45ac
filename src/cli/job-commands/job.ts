import type { Command } from 'commander';
import { checkOneOf } from '../../engine/input/check.js';
import { STATES, type State } from '../../job/job.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { program } from '../program.js';
import { bulk } from './bulk-actions.js';
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
  RERUN,
  RETRY,
  RUN_NOW,
  type Verb,
} from './job-actions.js';
import { jobObject, showJob } from './job-view.js';
import { addMove } from './subcommands/job-move.js';
import { tree, treeing } from './subcommands/job-tree.js';
import { update, updating } from './subcommands/job-update.js';

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore job',
    summary: 'List, show, change, move, retry, cancel and remove jobs.',
    examples: [
      ['crore job show mails order-17', 'all details of a job'],
      ['crore job ls mails --state ready', 'jobs that run next'],
      ['crore job cancel mails order-17 order-18', 'also while they are running'],
      ['crore job cancel mails --state ready --match ada', 'all that match'],
    ],
  });
  action(listing(command), list);
  const show = subcommand(command, 'show <queue> <id...>', {
    summary: 'Show all details of jobs.',
    examples: [
      ['crore job show mails order-17', 'as text'],
      ['crore job show mails order-17 --json | jq .payload', 'as JSON'],
    ],
  });
  action(show, showAll);
  verb(command, 'retry', RETRY, 'Move dead jobs to the back of the queue, with fresh attempts.');
  verb(command, 'rerun', RERUN, 'Run ended jobs again, also done ones, with fresh attempts.');
  verb(command, 'run-now', RUN_NOW, 'Make jobs that are scheduled or wait for a retry due now.');
  action(updating(command), update);
  addMove(command);
  action(treeing(command), tree);
  bulk(command, {
    name: 'job cancel',
    summary: 'Cancel jobs that have not ended; a running job is asked to stop.',
    jobs: 'jobs that have not ended',
    verb: CANCEL,
    states: ['blocked', 'scheduled', 'ready', 'active'],
    all: (queue, filter, how) => queue.cancel(filter, how),
  });
  bulk(command, {
    name: 'job rm',
    summary: 'Remove the records of jobs that have ended.',
    jobs: 'jobs that have ended',
    verb: REMOVE,
    states: ['done', 'dead', 'cancelled'],
    all: (queue, filter, how) => queue.remove(filter, how),
  });
  return answer(command, argv);
}

function listing(parent: Command): Command {
  const command = subcommand(parent, 'ls <queue>', {
    summary: 'List jobs: waiting ones in the order they will run, ended ones newest first.',
    examples: [
      ['crore job ls mails', 'all states, the first 100'],
      ['crore job ls mails --state scheduled --limit 10', 'jobs that are due next'],
      ['crore job ls mails --state done,cancelled --match ada --all', 'all with this text in payload, error or header'],
    ],
  });
  return listable(command.option('--state <states>', `Only jobs in these states: ${STATES.join(',')} (default: all).`));
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
    summary: `${summary} Exits with 1 if one of them was not changed.`,
    examples: [
      [`crore job ${name} mails order-17`, what.done],
      [`crore job ${name} mails order-17 order-18 --json`, 'one JSON object per job'],
    ],
  });
  action(command, async (queue: string, ids: string[], options: StoreOptions) => {
    checkIds(queue, ids);
    return withStore(options, ({ crore, out }) => actOn(out, crore.queue(queue), ids, what));
  });
}
