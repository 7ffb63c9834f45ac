import type { ComponentChildren } from 'preact';
import type { State } from '../../../job/job.js';
import type { JobRow } from '../../api.js';
import { JobActions } from '../components/job-actions.js';
import { JobProgress } from '../components/job-progress.js';
import { JobLink, Name } from '../components/name.js';
import { Scroll } from '../components/scroll.js';
import { mayAct } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { Ago, duration, Since } from '../lib/time.js';

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
export function JobTable({ jobs, state }: { jobs: readonly JobRow[]; state: State }) {
  const columns = COLUMNS[state];
  return (
    <Scroll class="table-place card" label="Jobs, a table">
      <table class="table cards job-table">
        <thead>
          <tr>
            <th scope="col" class="id-column">
              Id
            </th>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={column.kind}>
                {column.title}
              </th>
            ))}
            {mayAct() && (
              <th scope="col" class="actions">
                <span class="off-screen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row key={job.id} job={job} columns={columns} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ job, columns }: { job: JobRow; columns: readonly Column[] }) {
  return (
    <tr>
      <th scope="row" class="id-column card-title">
        <JobLink queue={job.queue} id={job.id} row />
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
      {job.attempt} / {job.maxAttempts}
      {job.crashes > 0 && <span class="row-notes bad end">{plural(job.crashes, 'crash', 'crashes')}</span>}
    </span>
  );
}

function tookOf({ startedAt, finishedAt }: JobRow): string {
  return startedAt === undefined || finishedAt === undefined ? '–' : duration(Math.max(0, finishedAt - startedAt));
}
