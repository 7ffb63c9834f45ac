import type { ComponentChildren } from 'preact';
import { type BulkRun, bulkRun, closeBulk, confirmBulk } from '../lib/bulk.js';
import { count, plural } from '../lib/format.js';
import { Dialog } from './dialog.js';

/** Where something that is done to many jobs is counted, confirmed, followed and reported; once in the page. */
export function BulkPlace() {
  const run = bulkRun.value;
  if (!run) return null;
  return (
    <Dialog title={titleOf(run)} onClose={closeBulk}>
      <Phase run={run} />
    </Dialog>
  );
}

function titleOf({ verb, jobs, phase, total }: BulkRun): string {
  if (phase === 'counting') return `${verb} ${jobs(2)}`;
  if (phase === 'asking') return total === 0 ? `There are no ${jobs(0)}` : `${verb} ${count(total)} ${jobs(total)}?`;
  return `${verb} ${count(total)} ${jobs(total)}`;
}

function Phase({ run }: { run: BulkRun }) {
  if (run.phase === 'counting') return <Counting run={run} />;
  if (run.phase === 'asking') return <Asking run={run} />;
  if (run.phase === 'running') return <Running run={run} />;
  return <Ended run={run} />;
}

function Counting({ run }: { run: BulkRun }) {
  return (
    <>
      <p role="status">
        Counting … {count(run.changed)} so far, {count(run.seen)} looked at.
      </p>
      <div class="progress endless">
        <div />
      </div>
      <Buttons close="Stop" />
    </>
  );
}

function Asking({ run }: { run: BulkRun }) {
  if (run.total === 0) return <Buttons close="Close" />;
  return (
    <>
      <p>{run.note}</p>
      <Buttons close="Keep as is">
        <button
          type="button"
          class={run.danger ? 'button danger' : 'button primary'}
          onClick={() => void confirmBulk()}
          autofocus={!run.danger}
        >
          {run.verb} {plural(run.total, 'job')}
        </button>
      </Buttons>
    </>
  );
}

function Running({ run }: { run: BulkRun }) {
  const part = Math.min(1, run.changed / Math.max(1, run.total));
  return (
    <>
      <p role="status">
        {count(run.changed)} of {count(run.total)}
      </p>
      <div
        class="progress"
        role="progressbar"
        aria-label={run.verb}
        aria-valuenow={Math.round(part * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <div style={{ width: `${part * 100}%` }} />
      </div>
      <Buttons close="Stop" />
    </>
  );
}

function Ended({ run }: { run: BulkRun }) {
  return (
    <>
      <p role="status">
        {run.stopped ? 'Stopped: ' : ''}
        {run.past} {plural(run.changed, 'job')}
        {run.stopped ? ' before that.' : '.'}
      </p>
      {run.error && <p class="bad">{run.error}</p>}
      <Buttons close="Close" />
    </>
  );
}

function Buttons({ close, children }: { close: string; children?: ComponentChildren }) {
  return (
    <div class="dialog-buttons">
      <button type="button" class="button" onClick={closeBulk}>
        {close}
      </button>
      {children}
    </div>
  );
}
