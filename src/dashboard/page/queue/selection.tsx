import { useState } from 'preact/hooks';
import type { State } from '../../../job/job.js';
import type { JobRow } from '../../api.js';
import { confirm } from '../frame/confirm.js';
import { mayAct } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { actAndSay } from '../lib/toast.js';
import { type Verb, verbsFor } from '../lib/verbs.js';

export interface Selection {
  /** Ids of rows that are selected and still on the page. */
  ids: readonly string[];
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  set: (ids: readonly string[]) => void;
}

/** Which rows of a page are selected; `page` names it: another page, or filter, begins with none. */
export function useSelection(jobs: readonly JobRow[], page: string): Selection {
  const [chosen, choose] = useState<{ page: string; ids: ReadonlySet<string> }>({ page, ids: new Set() });
  const known = chosen.page === page ? chosen.ids : new Set<string>();
  const set = (ids: readonly string[]) => choose({ page, ids: new Set(ids) });
  return {
    ids: jobs.map(({ id }) => id).filter((id) => known.has(id)),
    has: (id) => known.has(id),
    toggle: (id) => set(known.has(id) ? [...known].filter((one) => one !== id) : [...known, id]),
    set,
  };
}

/** What can be done to the selected rows. */
export function SelectionBar({ selection, queue, state }: { selection: Selection; queue: string; state: State }) {
  const { ids } = selection;
  if (!mayAct() || ids.length === 0) return null;
  const start = async (verb: Verb) => {
    if (await actOnAll(verb, queue, ids)) selection.set([]);
  };
  return (
    <div class="selection card" role="status">
      <span>{plural(ids.length, 'job')} selected</span>
      <span class="buttons tight">
        {verbsFor(state).map((verb) => (
          <button
            key={verb.action}
            type="button"
            class={`button small ${verb.danger ? 'danger' : ''}`}
            onClick={() => void start(verb)}
          >
            {verb.label} selected
          </button>
        ))}
        <button type="button" class="button small" onClick={() => selection.set([])}>
          Select none
        </button>
      </span>
    </div>
  );
}

/** True if it was done. */
async function actOnAll(verb: Verb, queue: string, ids: readonly string[]): Promise<boolean> {
  const jobs = plural(ids.length, 'job');
  const text = verb.note ?? '';
  if (!(await confirm({ title: `${verb.label}: ${jobs}?`, text, verb: `${verb.label} ${jobs}`, danger: verb.danger })))
    return false;
  const result = await actAndSay({ action: verb.action, queue, ids: [...ids] }, ({ changed }) =>
    changed === ids.length ? `${verb.past} ${jobs}` : `${verb.past} ${changed} of ${jobs}: the others have changed`,
  );
  return result !== undefined;
}
