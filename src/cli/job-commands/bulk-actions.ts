import type { Command } from 'commander';
import { checkOneOf } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { BulkOptions, Filter, Queue, State } from '../../index.js';
import { action, type StoreOptions, subcommand, withStore } from '../action.js';
import { Progress } from '../progress.js';
import { actOn, byUser, checkIds, type FilterOptions, filterable, filterOf, type Verb } from './job-actions.js';
import { given } from './job-options.js';

/** Subcommands that act on jobs selected by id, by filter, or on all of them. */

export interface BulkCommand {
  /** Such as `dead retry`. */
  name: string;
  summary: string;
  /** What all its jobs are called, such as `dead jobs`. */
  jobs: string;
  verb: Verb;
  /** The states it acts on; `--state` selects among several. */
  states: readonly State[];
  all: (queue: Queue, filter: Filter, how: BulkOptions) => Promise<number>;
}

type BulkLine = StoreOptions & FilterOptions & { all?: boolean; state?: string };

export function bulk(parent: Command, spec: BulkCommand): void {
  const { name, jobs, states, verb } = spec;
  const command = subcommand(parent, `${name.split(' ')[1]} <queue> [id...]`, {
    summary: `${spec.summary} Select them by id, by filter, or all.`,
    examples: [
      [`crore ${name} mails order-17`, 'one job'],
      [`crore ${name} mails --match timeout`, 'those with this text in payload, error or header'],
      [`crore ${name} mails --all`, `all ${jobs}`],
    ],
  });
  filterable(command).option('--all', `All ${jobs}.`);
  if (states.length > 1) command.option('--state <states>', `Only jobs in these states: ${states.join(',')}.`);
  action(command, async (queue: string, ids: string[], options: BulkLine) => {
    checkIds(queue, ids);
    const filter: Filter = { ...filterOf(options), ...given({ state: statesOf(options.state, states) }) };
    checkChoice(ids, filter, options.all === true, name);
    return withStore(options, async ({ crore, out }) => {
      if (ids.length > 0) return actOn(out, crore.queue(queue), ids, verb);
      const count = await actOnAll(crore.queue(queue), filter, spec);
      out.say({ queue, [verb.done]: count }, `${count} ${verb.done}`);
      return 0;
    });
  });
}

export function statesOf(text: string | undefined, known: readonly State[]): State[] | undefined {
  return text?.split(',').map((state) => checkOneOf(state, '--state', known));
}

export async function actOnAll(
  queue: Queue,
  filter: Filter,
  { states, all }: Pick<BulkCommand, 'states' | 'all'>,
): Promise<number> {
  const by = byUser();
  if (!Progress.isWatched) return all(queue, filter, { by });
  const counts = await queue.count();
  const asked = filter.state === undefined ? states : [filter.state].flat();
  const progress = new Progress({ total: asked.reduce((sum, state) => sum + counts[state], 0) });
  try {
    return await all(queue, filter, { by, progress: (seen) => progress.report(seen) });
  } finally {
    progress.end();
  }
}

/** Requires exactly one of ids, a filter, or all, so that nobody selects all by accident. */
export function checkChoice(ids: readonly string[], filter: object, all: boolean, name: string): void {
  const ways = [ids.length > 0, Object.keys(filter).length > 0, all].filter(Boolean).length;
  if (ways === 0)
    throw new CroreError('BAD_OPTION', `${name}: no jobs selected: give ids, a filter such as --match, or --all`);
  if (ways > 1) throw new CroreError('BAD_OPTION', `${name}: give only one of ids, a filter, or --all`);
}
