import type { JobFilter } from '../../api.js';
import { MoveButton } from '../components/move-button.js';
import { mayAct } from '../lib/api.js';
import { startBulk } from '../lib/bulk.js';
import { type BulkVerb, bulkVerbsFor } from '../lib/verbs.js';
import { isFiltered } from './filter-bar.js';

interface BulkButtonsProps {
  queue: string;
  filter: JobFilter;
  /** How many jobs are in the state of the filter. */
  known?: number;
}

/** What can be done to all jobs that match the filter. */
export function BulkButtons({ queue, filter, known = 0 }: BulkButtonsProps) {
  if (!mayAct() || known === 0) return null;
  const filtered = isFiltered(filter);
  return (
    <span class="buttons tight">
      {bulkVerbsFor(filter.state).map((verb) => (
        <button
          key={verb.action}
          type="button"
          class={`button small ${verb.danger ? 'danger' : ''}`}
          onClick={() => void start(verb, queue, filter, filtered ? undefined : known)}
        >
          {verb.label} all{filtered ? ' matching' : ''}
        </button>
      ))}
      <MoveButton
        state={filter.state}
        what={`all ${filtered ? 'matching ' : ''}${filter.state} jobs`}
        label={`Move all${filtered ? ' matching' : ''}`}
        small
        move={(to) => startMove(queue, filter, to, filtered ? undefined : known)}
      />
    </span>
  );
}

function startMove(queue: string, filter: JobFilter, to: string, known?: number): Promise<void> {
  return startBulk({
    action: { action: 'move', queue, filter, to },
    verb: 'Move',
    past: 'Moved',
    jobs: (count) => `${filter.state} ${count === 1 ? 'job' : 'jobs'} of “${queue}” to “${to}”`,
    note: 'Jobs that need others, or that others need, and those whose id is taken there stay where they are.',
    ...(known === undefined ? {} : { known }),
  });
}

function start(verb: BulkVerb, queue: string, filter: JobFilter, known?: number): Promise<void> {
  const which = isFiltered(filter) ? ' that match the filter' : '';
  return startBulk({
    action: { action: verb.action, queue, filter },
    verb: verb.label,
    past: verb.past,
    jobs: (count) => `${filter.state} ${count === 1 ? 'job' : 'jobs'} of “${queue}”${which}`,
    note: verb.note,
    danger: verb.danger,
    ...(known === undefined ? {} : { known }),
  });
}
