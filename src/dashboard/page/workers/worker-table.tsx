import type { WorkerRow } from '../../api.js';
import { Badge } from '../components/badge.js';
import { JobLink, Name, QueueLink } from '../components/name.js';
import { Table } from '../components/table.js';
import { plural } from '../lib/format.js';
import { Ago, now, rough, Since } from '../lib/time.js';

/** Workers with what they hold. A worker whose session has ended without a word is marked. */
export function WorkerTable({ workers, withQueue = false }: { workers: readonly WorkerRow[]; withQueue?: boolean }) {
  return (
    <Table
      label="Workers"
      class="cards worker-table"
      heads={[
        ['Worker', 'wide'],
        withQueue && ['Queue', 'wide'],
        ['Session', 'session-column', 'When its session ends unless a heartbeat renews it'],
        ['Since'],
        ['Busy', 'figure'],
        ['Holds', 'wide'],
      ]}
    >
      {workers.map((worker) => (
        <Row key={`${worker.queue}\n${worker.id}`} worker={worker} withQueue={withQueue} />
      ))}
    </Table>
  );
}

function Row({ worker, withQueue }: { worker: WorkerRow; withQueue: boolean }) {
  const { host, pid, since, concurrency, holds } = worker;
  return (
    <tr>
      <th scope="row" class="wide card-title">
        <Name text={host === undefined ? worker.id : `${host}${pid === undefined ? '' : ` · ${pid}`}`} />
        {host !== undefined && (
          <span class="row-notes muted">
            <Name text={worker.id} mono />
          </span>
        )}
      </th>
      {withQueue && (
        <td class="wide" data-label="Queue">
          <QueueLink name={worker.queue} />
        </td>
      )}
      <td data-label="Session">
        <Session deadline={worker.deadline} />
      </td>
      <td data-label="Since">{since === undefined ? <span class="zero">–</span> : <Ago at={since} />}</td>
      <td class="figure" data-label="Busy">
        {concurrency === undefined ? holds : `${holds} / ${concurrency}`}
      </td>
      <td class="wide" data-label="Holds">
        <Held worker={worker} />
      </td>
    </tr>
  );
}

function Session({ deadline }: { deadline: number }) {
  const left = deadline - now.value;
  if (left < 0) {
    return (
      <>
        <Badge text="no heartbeat" tone="bad" />
        <span class="row-notes bad">session ended {rough(-left)} ago</span>
      </>
    );
  }
  return <span title="The session ends then unless a heartbeat comes">alive, {rough(left)} left</span>;
}

function Held({ worker: { queue, jobs, holds } }: { worker: WorkerRow }) {
  if (jobs.length === 0) return <span class="zero">{holds === 0 ? 'nothing' : plural(holds, 'raw task')}</span>;
  return (
    <ul class="held">
      {jobs.map(({ id, startedAt }) => (
        <li key={id}>
          <JobLink queue={queue} id={id} row />
          {startedAt !== undefined && (
            <span class="muted">
              {' '}
              for <Since at={startedAt} />
            </span>
          )}
        </li>
      ))}
      {holds > jobs.length && <li class="muted">and {holds - jobs.length} more</li>}
    </ul>
  );
}
