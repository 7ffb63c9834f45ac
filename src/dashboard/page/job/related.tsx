import type { JobReference, JobView } from '../../api.js';
import { StateBadge } from '../components/badge.js';
import { JobLink, Name } from '../components/name.js';
import { Section } from '../frame/page.js';
import { count } from '../lib/format.js';

/** What the job waits for, and what waits for it. */
export function Related({ job }: { job: JobView }) {
  return (
    <>
      <References title="Needs" home={job.queue} jobs={job.needs} total={job.needsTotal} />
      <References title="Needed by" home={job.queue} jobs={job.dependents} total={job.dependentsTotal} />
    </>
  );
}

interface ReferencesProps {
  title: string;
  home: string;
  jobs: readonly (JobReference & { on?: string })[];
  total: number;
}

function References({ title, home, jobs, total }: ReferencesProps) {
  if (jobs.length === 0) return null;
  return (
    <Section title={title} beside={<span class="muted">{count(total)}</span>}>
      <ul class="references card">
        {jobs.map((job) => (
          <li key={`${job.queue}\n${job.id}`}>
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
          </li>
        ))}
        {total > jobs.length && <li class="muted">and {count(total - jobs.length)} more</li>}
      </ul>
    </Section>
  );
}
