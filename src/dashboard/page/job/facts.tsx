import type { ComponentChildren } from 'preact';
import type { JobView } from '../../api.js';
import { JobProgress } from '../components/job-progress.js';
import { Name } from '../components/name.js';
import { Section } from '../frame/page.js';
import { Ago } from '../lib/time.js';

/** What is known of a job, line by line. */
export function JobFacts({ job }: { job: JobView }) {
  return (
    <Section title="Facts">
      <dl class="facts card">
        <Fact label="Attempts">
          {job.attempt}
          {job.maxAttempts !== undefined && ` of ${job.maxAttempts}`}
          {job.crashes > 0 && <span class="bad">, {job.crashes} crashed</span>}
        </Fact>
        <Fact label="Added">
          <Ago at={job.createdAt} />
        </Fact>
        <TimeFact label="Due" at={job.state === 'scheduled' ? job.runAt : undefined} />
        <TimeFact label="Retried until" at={job.retryUntil} />
        <TimeFact label="Started" at={job.startedAt} />
        <TimeFact label="Ended" at={job.finishedAt} />
        <TextFact label="Held by" text={job.state === 'active' ? job.worker : undefined} />
        <TimeFact label="Lease ends" at={job.leaseUntil} />
        <TimeFact label="Attempt must end" at={job.reservedUntil} />
        <TextFact label="Lease token" text={job.state === 'active' ? job.token : undefined} />
        {job.priority !== 0 && <Fact label="Priority">{job.priority}</Fact>}
        {job.progress !== undefined && job.state !== 'active' && (
          <Fact label="Progress">
            <JobProgress progress={job.progress} />
          </Fact>
        )}
        <TextFact label="Group" text={job.group} />
        <TextFact label="Unique key" text={job.unique && `${job.unique.key} (${job.unique.scope})`} />
      </dl>
    </Section>
  );
}

function TextFact({ label, text }: { label: string; text?: string }) {
  if (text === undefined) return null;
  return (
    <Fact label={label}>
      <Name text={text} mono />
    </Fact>
  );
}

function TimeFact({ label, at }: { label: string; at?: number }) {
  if (at === undefined) return null;
  return (
    <Fact label={label}>
      <Ago at={at} />
    </Fact>
  );
}

function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
