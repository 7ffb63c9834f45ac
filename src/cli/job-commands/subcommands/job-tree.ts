import type { Command } from 'commander';
import { CroreError } from '../../../errors.js';
import type { JobTree } from '../../../index.js';
import { type CommandSession, type StoreOptions, subcommand, withStore } from '../../action.js';
import { notBoth } from '../../option-values.js';
import { type Output, printable } from '../../output.js';
import { byUser, checkIds, missing } from '../job-actions.js';
import { colourOf, jobObject } from '../job-view.js';

interface TreeOptions extends StoreOptions {
  cancel?: boolean;
  rm?: boolean;
}

/** `crore job tree`: a job with its children. */
export function treeing(parent: Command): Command {
  return subcommand(parent, 'tree <queue> <id>', {
    summary: 'Show a job with its children, their children, and so on; or cancel or remove all of them.',
    examples: [
      ['crore job tree reports may', 'one line for each job'],
      ['crore job tree reports may --cancel', 'the job and all below it that have not ended'],
    ],
  })
    .option('--cancel', 'Cancel the job and its descendants.')
    .option('--rm', 'Cancel them and remove their records.');
}

export async function tree(name: string, id: string, options: TreeOptions): Promise<number> {
  checkIds(name, [id]);
  notBoth(options, 'cancel', 'rm');
  return withStore(options, (session) => act(session, name, id, options));
}

async function act({ crore, out }: CommandSession, name: string, id: string, options: TreeOptions): Promise<number> {
  const queue = crore.queue(name);
  const found = await queue.tree(id);
  if (!found) throw new CroreError('NOT_FOUND', missing(name, id));
  if (options.cancel || options.rm) {
    const by = byUser();
    const count = options.cancel ? await queue.cancelTree(id, { by }) : await queue.removeTree(id, { by });
    const done = options.cancel ? 'cancelled' : 'removed';
    out.say({ queue: name, id, [done]: count }, `${count} ${done}`);
    return 0;
  }
  if (out.json) out.say(treeObject(found), '');
  else print(out, found, '', '');
  return 0;
}

function treeObject({ job, children, truncated }: JobTree): object {
  return { ...jobObject(job), tree: children.map(treeObject), ...(truncated ? { truncated } : {}) };
}

function print(out: Output, { job, children, truncated }: JobTree, first: string, rest: string): void {
  const error = job.error === undefined ? '' : `  ${printable(job.error, 120)}`;
  const state = out.paint(job.state, colourOf(job.state));
  out.write(`${first}${printable(job.queue)}  ${printable(job.id)}  ${state}${error}`);
  children.forEach((child, i) => {
    const isLast = i === children.length - 1 && !truncated;
    print(out, child, `${rest}${isLast ? '└─ ' : '├─ '}`, `${rest}${isLast ? '   ' : '│  '}`);
  });
  if (truncated) out.write(`${rest}└─ …`);
}
