import type { JobView } from '../../api.js';
import { StateBadge } from '../components/badge.js';
import { CopyButton } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { JobActions } from '../components/job-actions.js';
import { JobProgress } from '../components/job-progress.js';
import { ContentBox } from '../components/json.js';
import { QueueLink } from '../components/name.js';
import { Scroll } from '../components/scroll.js';
import { Skeleton } from '../components/skeleton.js';
import { Page, Section } from '../frame/page.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { Ago, Since } from '../lib/time.js';
import { JobFacts } from './facts.js';
import { Headers } from './headers.js';
import { Related } from './related.js';
import { TimeLine } from './time-line.js';

export function JobPage() {
  const { query } = location.value;
  const queue = query.get('queue') ?? '';
  const id = query.get('id') ?? '';
  const { content, refusal } = useView('job', { queue, id });
  return (
    <Page
      title={id}
      trail={<Trail queue={queue} />}
      beside={content && <StateBadge state={content.state} />}
      actions={content && <Actions job={content} />}
    >
      {!content && !refusal && <Skeleton rows={10} />}
      {!content && refusal && <NoJob queue={queue} />}
      {content && <Job job={content} gone={refusal !== undefined} />}
    </Page>
  );
}

function Trail({ queue }: { queue: string }) {
  return (
    <>
      <a href={href('')}>Queues</a> / <QueueLink name={queue} />
    </>
  );
}

function Actions({ job }: { job: JobView }) {
  return (
    <>
      <CopyButton text={job.command} label="Copy as command" />
      <JobActions queue={job.queue} id={job.id} state={job.state} />
    </>
  );
}

function NoJob({ queue }: { queue: string }) {
  return (
    <Empty title="There is no such job">
      <p>It never existed, or its record is no longer kept: ended jobs are kept for a while, then dropped.</p>
      <p>
        <a href={href('queue', { name: queue })}>Jobs of this queue</a>
      </p>
    </Empty>
  );
}

function Job({ job, gone }: { job: JobView; gone: boolean }) {
  return (
    <>
      {gone && <p class="reasons">This job has been removed; this is what was known of it.</p>}
      {!gone && <Reasons job={job} />}
      <div class="job-columns">
        <div class="job-column">
          <Section title="Timeline">
            <TimeLine events={job.story} />
          </Section>
          <Related job={job} />
        </div>
        <div class="job-column">
          <JobFacts job={job} />
          <Section title="Payload">
            <ContentBox content={job.payload} label="Payload" />
          </Section>
          {job.result && (
            <Section title="Result">
              <ContentBox content={job.result} label="Result" />
            </Section>
          )}
          <Headers headers={job.headers} />
          <Log lines={job.log} />
        </div>
      </div>
    </>
  );
}

const TITLES: Partial<Record<JobView['state'], string>> = {
  active: 'What is it doing?',
  done: 'What became of it?',
  dead: 'Why is it dead?',
  cancelled: 'Why is it cancelled?',
};

/** The first question of whoever opens this page. */
function Reasons({ job }: { job: JobView }) {
  const reasons = job.reasons.length > 0 ? job.reasons : endOf(job);
  if (reasons.length === 0 && job.state !== 'active') return null;
  return (
    <section class={`reasons reasons-${job.state}`} aria-label="Reasons">
      <h2>{TITLES[job.state] ?? 'Why is it not running?'}</h2>
      <ul>
        {reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
        {job.state === 'active' && <Running job={job} />}
      </ul>
      {job.state === 'active' && <JobProgress progress={job.progress} />}
    </section>
  );
}

/** For a job that has ended, its error is the reason. */
function endOf({ state, error }: JobView): string[] {
  return (state === 'dead' || state === 'cancelled') && error !== undefined ? [error] : [];
}

function Running({ job: { attempt, maxAttempts, worker, startedAt, leaseUntil } }: { job: JobView }) {
  return (
    <li>
      Attempt {attempt}
      {maxAttempts !== undefined && ` of ${maxAttempts}`}
      {startedAt !== undefined && (
        <>
          {' '}
          has been running for <Since at={startedAt} />
        </>
      )}
      {worker !== undefined && (
        <>
          {' '}
          on <bdi class="mono">{worker}</bdi>
        </>
      )}
      {leaseUntil !== undefined && (
        <>
          ; its lease ends <Ago at={leaseUntil} /> unless it is renewed
        </>
      )}
      .
    </li>
  );
}

function Log({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <Section title="Log" beside={<CopyButton text={lines.join('\n')} />}>
      <Scroll class="content wrap card" label="Log">
        <pre>{lines.join('\n')}</pre>
      </Scroll>
    </Section>
  );
}
