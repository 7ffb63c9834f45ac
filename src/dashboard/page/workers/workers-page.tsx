import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { Name } from '../components/name.js';
import { Skeleton } from '../components/skeleton.js';
import { Page } from '../frame/page.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { WorkerTable } from './worker-table.js';

export function WorkersPage() {
  const queue = location.value.query.get('queue') ?? undefined;
  const { content } = useView('workers', queue === undefined ? {} : { queue });
  return (
    <Page title="Workers">
      {queue !== undefined && (
        <p class="narrowed">
          Of the queue <Name text={queue} /> <a href={href('workers')}>Show all</a>
        </p>
      )}
      {!content && <Skeleton rows={6} />}
      {content && content.workers.length > 0 && (
        <WorkerTable workers={content.workers} withQueue={queue === undefined} />
      )}
      {content?.workers.length === 0 && <NoWorkers />}
      {content?.more && <p class="muted">There are more: open a queue to see its workers.</p>}
    </Page>
  );
}

function NoWorkers() {
  return (
    <Empty title="No worker is connected">
      <p>Jobs wait until one comes. To run an executable for each job of a queue:</p>
      <Command line="npx crore work mails -- echo {}" />
    </Empty>
  );
}
