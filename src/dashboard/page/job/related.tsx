import type { JobReference, JobView } from '../../api.js';
import { StateBadge } from '../components/badge.js';
import { JobProgress } from '../components/job-progress.js';
import { JobLink, Name } from '../components/name.js';
import { Section } from '../frame/page.js';
import { count } from '../lib/format.js';
import { BatchActions, TreeActions } from './family-actions.js';

/** What the job waits for, what waits for it, and what it belongs to. */
export function Related({ job }: { job: JobView }) {
  return (
    <>
      {job.parent && <References title="Child of" home={job.queue} jobs={[job.parent]} />}
      {job.memberOf && <References title="Member of the batch" home={job.queue} jobs={[job.memberOf]} />}
      {job.batch && <Batch job={job} batch={job.batch} />}
      <Tree job={job} />
      <References title="Needs" home={job.queue} jobs={job.needs} total={job.needsTotal} />
      <References title="Needed by" home={job.queue} jobs={job.dependents} total={job.dependentsTotal} />
    </>
  );
}

/** The job with its children, theirs below each, and what can be done to all of them. */
function Tree({ job }: { job: JobView }) {
  if (job.tree.length === 0) return null;
  const total = `${job.treeCut ? 'more than ' : ''}${count(job.tree.length)}`;
  return (
    <Section
      title="Children"
      beside={
        <>
          <span class="muted">{total}</span>
          <TreeActions job={job} />
        </>
      }
    >
      <ul class="references card">
        {job.tree.map((child) => (
          <li key={`${child.queue}\n${child.id}`} class={`depth-${Math.min(child.depth, 6)}`}>
            <Reference job={child} home={job.queue} />
          </li>
        ))}
        {job.treeCut && <li class="muted">and more</li>}
      </ul>
    </Section>
  );
}

interface ReferencesProps {
  title: string;
  home: string;
  jobs: readonly (JobReference & { on?: string })[];
  total?: number;
}

/** How far a batch has come, and some of the members that it waits for. */
function Batch({ job, batch }: { job: JobView; batch: NonNullable<JobView['batch']> }) {
  const { open, total, done, dead, cancelled, members } = batch;
  const pending = total - done - dead - cancelled;
  const parts = Object.entries({ done, dead, cancelled, pending }).filter(([, n]) => n > 0);
  return (
    <>
      <Section
        title="Batch"
        beside={
          <>
            <span class="muted">{open ? 'open' : 'closed'}</span>
            <BatchActions job={job} batch={batch} />
          </>
        }
      >
        <div class="batch card">
          <JobProgress progress={{ percent: total === 0 ? 0 : (100 * (total - pending)) / total }} />
          <p class="muted">
            {count(total)} {total === 1 ? 'member' : 'members'}
            {parts.map(([name, n]) => `, ${count(n)} ${name}`)}
          </p>
        </div>
      </Section>
      <References title="Members that have not ended" home={job.queue} jobs={members} total={pending} />
    </>
  );
}

function References({ title, home, jobs, total = jobs.length }: ReferencesProps) {
  if (jobs.length === 0) return null;
  return (
    <Section title={title} beside={<span class="muted">{count(total)}</span>}>
      <ul class="references card">
        {jobs.map((job) => (
          <li key={`${job.queue}\n${job.id}`}>
            <Reference job={job} home={home} />
          </li>
        ))}
        {total > jobs.length && <li class="muted">and {count(total - jobs.length)} more</li>}
      </ul>
    </Section>
  );
}

function Reference({ job, home }: { job: JobReference & { on?: string }; home: string }) {
  return (
    <>
      {job.state ? <StateBadge state={job.state} /> : <span class="badge">not kept</span>}
      <span class="reference">
        <JobLink queue={job.queue} id={job.id} row />
        {job.queue !== home && (
          <span class="muted in-queue">
            in <Name text={job.queue} />
          </span>
        )}
      </span>
      {job.on === 'finished' && <span class="muted nowrap">any end</span>}
    </>
  );
}
