import { CroreError } from '../../errors.js';
import type { ChildList } from '../../job/children.js';
import type { Settlement } from '../../store/store.js';
import { checkName } from './check.js';

/** How many children a job may wait for. */
export const MOST_CHILDREN = 10_000;

function checkChildren(list: ChildList): void {
  const { length } = list.children;
  if (length > MOST_CHILDREN)
    throw new CroreError('BAD_OPTION', `a job can wait for at most ${MOST_CHILDREN} children, not ${length}`);
  const seen = new Set<string>();
  for (const { queue, id } of list.children) {
    checkName(queue, 'children: queue name');
    checkName(id, 'children: job id');
    const name = `${queue}\0${id}`;
    if (seen.has(name)) throw new CroreError('BAD_OPTION', `child '${id}' of queue '${queue}' is named twice`);
    seen.add(name);
  }
}

/** Checks a settlement that a client has assembled. */
export function checkPark({ outcome, lease }: Settlement): void {
  if (outcome.to !== 'blocked') return;
  if (lease.id === undefined)
    throw new CroreError('BAD_OPTION', 'a raw task has no record, and cannot wait for children');
  checkChildren(outcome.list);
}
