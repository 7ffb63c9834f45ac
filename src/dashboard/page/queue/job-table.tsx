import type { ComponentChildren } from 'preact';
import type { State } from '../../../job/job.js';
import type { JobRow } from '../../api.js';
import { JobActions } from '../components/job-actions.js';
import { JobProgress } from '../components/job-progress.js';
import { JobLink, Name } from '../components/name.js';
import { ACTIONS, type Head, Table } from '../components/table.js';
import { mayAct } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { Ago, duration, Since } from '../lib/time.js';
import type { Selection } from './selection.js';

interface Column {
  title: string;
  kind?: 'figure' | 'wide';
  cell: (job: JobRow) => ComponentChildren;
}

const payload: Column = { title: 'Payload', kind: 'wide', cell: (job) => <Name text={job.payload} mono /> };
const error: Column = { title: 'Error', kind: 'wide', cell: (job) => <Name text={job.error ?? '–'} mono /> };
const added: Column = { title: 'Added', cell: (job) => <Ago at={job.createdAt} /> };
const attempts: Column = { title: 'Attempts', kind: 'figure', cell: (job) => <Attempts job={job} /> };
const due: Column = { title: 'Due', cell: (job) => job.runAt !== undefined && <Ago at={job.runAt} /> };
const worker: Column = { title: 'Worker', cell: (job) => job.worker !== undefined && <Name text={job.worker} mono /> };
const running: Column = {
  title: 'Running for',
  cell: (job) => job.startedAt !== undefined && <Since at={job.startedAt} />,
};
const progress: Column = { title: 'Progress', cell: (job) => <JobProgress progress={job.progress} /> };
const ended: Column = { title: 'Ended', cell: (job) => job.finishedAt !== undefined && <Ago at={job.finishedAt} /> };
const took: Column = { title: 'Took', kind: 'figure', cell: tookOf };

const COLUMNS: Record<State, Column[]> = {
  blocked: [payload, added],
  scheduled: [due, attempts, { ...error, title: 'Last error' }, payload],
  ready: [payload, attempts, added],
  active: [running, progress, worker, attempts, payload],
  done: [ended, took, attempts, payload],
  dead: [error, attempts, ended, payload],
  cancelled: [ended, payload, added],
};

/** Jobs of one state, with what is worth knowing in that state. */
export function JobTable({ jobs, state, selection }: { jobs: readonly JobRow[]; state: State; selection: Selection }) {
  const columns = COLUMNS[state];
  return (
    <Table
      label="Jobs"
      class="cards job-table"
      heads={[
        [<IdHead jobs={jobs} selection={selection} />, 'id-column'],
        ...columns.map(({ title, kind }): Head => [title, kind]),
        mayAct() && ACTIONS,
      ]}
    >
      {jobs.map((job) => (
        <Row key={job.id} job={job} columns={columns} selection={selection} />
      ))}
    </Table>
  );
}

function IdHead({ jobs, selection }: { jobs: readonly JobRow[]; selection: Selection }) {
  const all = selection.ids.length === jobs.length;
  return (
    <span class="with-check">
      {mayAct() && (
        <input
          type="checkbox"
          aria-label="Select all on this page"
          checked={all}
          onChange={() => selection.set(all ? [] : jobs.map(({ id }) => id))}
        />
      )}
      Id
    </span>
  );
}

function Row({ job, columns, selection }: { job: JobRow; columns: readonly Column[]; selection: Selection }) {
  return (
    <tr>
      <th scope="row" class="id-column card-title">
        <span class="with-check">
          {mayAct() && (
            <input
              type="checkbox"
              aria-label={`Select ${job.id}`}
              checked={selection.has(job.id)}
              onChange={() => selection.toggle(job.id)}
            />
          )}
          <JobLink queue={job.queue} id={job.id} row />
        </span>
        {job.group !== undefined && (
          <span class="row-notes muted">
            group <Name text={job.group} />
          </span>
        )}
      </th>
      {columns.map((column) => (
        <td key={column.title} class={column.kind} data-label={column.title}>
          {column.cell(job)}
        </td>
      ))}
      {mayAct() && (
        <td class="actions">
          <JobActions queue={job.queue} id={job.id} state={job.state} small />
        </td>
      )}
    </tr>
  );
}

function Attempts({ job }: { job: JobRow }) {
  return (
    <span class={job.attempt === 0 ? 'zero' : ''}>
      {job.attempt}
      {job.maxAttempts !== undefined && ` / ${job.maxAttempts}`}
      {job.crashes > 0 && <span class="row-notes bad end">{plural(job.crashes, 'crash', 'crashes')}</span>}
    </span>
  );
}

function tookOf({ startedAt, finishedAt }: JobRow): string {
  return startedAt === undefined || finishedAt === undefined ? '–' : duration(Math.max(0, finishedAt - startedAt));
}
