import { useEffect, useState } from 'preact/hooks';
import type { FoundView } from '../../api.js';
import { StateBadge } from '../components/badge.js';
import { Empty } from '../components/empty.js';
import { JobLink, Name } from '../components/name.js';
import { get } from '../lib/api.js';
import { count, plural } from '../lib/format.js';

/** The jobs that have an id, in all queues; where there are very many queues, it goes on when somebody asks. */
export function FoundJobs({ id }: { id: string }) {
  const [found, setFound] = useState<FoundView>();
  const [after, setAfter] = useState<string>();
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    const add = (next: FoundView) =>
      setFound((known) => ({ ...next, jobs: [...(after === undefined ? [] : (known?.jobs ?? [])), ...next.jobs] }));
    get('find', { id, after }, stop.signal).then(add, (error: Error) => {
      if (!stop.signal.aborted) setProblem(error.message);
    });
    return () => stop.abort();
  }, [id, after]);
  if (problem !== '') return <p class="bad">{problem}</p>;
  if (!found) return <Empty title="Looking through the queues …" />;
  return (
    <>
      {found.jobs.length === 0 && <Empty title={`No job has this id in ${amount(found)}`} />}
      {found.jobs.length > 0 && <Jobs found={found} />}
      {found.after !== undefined && (
        <p class="muted">
          {count(found.looked)} of {plural(found.queues, 'queue')} looked through.{' '}
          <button type="button" class="button small" onClick={() => setAfter(found.after)}>
            Look further
          </button>
        </p>
      )}
    </>
  );
}

function amount({ looked, queues }: FoundView): string {
  return looked < queues
    ? `the first ${plural(looked, 'queue')}`
    : queues === 1
      ? 'the queue'
      : `any of ${count(queues)} queues`;
}

function Jobs({ found }: { found: FoundView }) {
  return (
    <ul class="references card" aria-label="Jobs with this id">
      {found.jobs.map((job) => (
        <li key={job.queue}>
          {job.state && <StateBadge state={job.state} />}
          <span class="reference">
            <JobLink queue={job.queue} id={job.id} row />
            <span class="muted in-queue">
              in <Name text={job.queue} />
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}
