import type { Command } from 'commander';
import { MOVABLE } from '../../../engine/queue/move.js';
import { CroreError } from '../../../errors.js';
import type { Filter } from '../../../index.js';
import { action, type StoreOptions, subcommand, withStore } from '../../action.js';
import { printable } from '../../output.js';
import { actOnAll, checkChoice, statesOf } from '../bulk-actions.js';
import { byUser, checkIds, complain, type FilterOptions, filterable, filterOf } from '../job-actions.js';
import { given } from '../job-options.js';

type MoveLine = StoreOptions & FilterOptions & { to?: string; all?: boolean; state?: string };

/** `crore job move`: moves jobs to another queue. */
export function addMove(parent: Command): void {
  const command = subcommand(parent, 'move <queue> [id...]', {
    summary:
      'Move jobs that wait, or are dead, to another queue. Select them by id, by filter, or all. Exits with 1 if one of the given ids was not moved.',
    examples: [
      ['crore job move mails order-17 --to slow-mails', 'one job'],
      ['crore job move mails --to slow-mails --state ready --match ada', 'all that match'],
    ],
  });
  filterable(command)
    .option('--to <queue>', 'The other queue.')
    .option('--all', 'All jobs that wait or are dead.')
    .option('--state <states>', `Only jobs in these states: ${MOVABLE.join(',')}.`);
  action(command, move);
}

async function move(name: string, ids: string[], options: MoveLine): Promise<number> {
  const { to } = options;
  if (to === undefined) throw new CroreError('BAD_OPTION', 'job move: give the other queue with --to');
  checkIds(name, ids);
  checkIds(to, []);
  if (to === name) throw new CroreError('BAD_OPTION', `job move: the jobs are already in queue '${printable(name)}'`);
  const filter: Filter = { ...filterOf(options), ...given({ state: statesOf(options.state, MOVABLE) }) };
  checkChoice(ids, filter, options.all === true, 'job move');
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    if (ids.length === 0) {
      const all = { states: MOVABLE, all: (_queue: unknown, which: Filter, how: object) => queue.move(which, to, how) };
      const count = await actOnAll(queue, filter, all);
      out.say({ queue: name, to, moved: count }, `${count} moved`);
      return 0;
    }
    let code = 0;
    for (const id of ids) {
      try {
        await queue.move(id, to, { by: byUser() });
        out.say({ queue: name, id, to, outcome: 'moved' }, `${printable(id, 512)}  moved`);
      } catch (error) {
        if (!(error instanceof CroreError) || !REFUSALS.includes(error.code)) throw error;
        code = 1;
        if (out.json) out.say({ queue: name, id, to, outcome: 'refused', code: error.code }, '');
        complain(printable(error.message, 512));
      }
    }
    return code;
  });
}

const REFUSALS: readonly string[] = ['NOT_FOUND', 'JOB_STARTED', 'JOB_LINKED', 'ID_TAKEN'];
