import type { DeadView } from '../../api.js';
import { Empty } from '../components/empty.js';
import { Name } from '../components/name.js';
import { Skeleton } from '../components/skeleton.js';
import { Page, Section } from '../frame/page.js';
import { useTellDeadCount } from '../lib/dead-count.js';
import { count, plural } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { DeadQueues } from './dead-queues.js';
import { ErrorGroup } from './error-group.js';

export function DeadPage() {
  const queue = location.value.query.get('queue') ?? undefined;
  const { content } = useView('dead', queue === undefined ? {} : { queue });
  useTellDeadCount(queue === undefined ? content?.total : undefined);
  return (
    <Page title="Dead" beside={content && <span class="muted">{plural(content.total, 'job')}</span>}>
      {queue !== undefined && (
        <p class="narrowed">
          Of the queue <Name text={queue} /> <a href={href('dead')}>Show all</a>
        </p>
      )}
      {!content && <Skeleton rows={8} />}
      {content && <Groups content={content} queue={queue} />}
      {content && content.queues.length > 0 && <DeadQueues queues={content.queues} />}
    </Page>
  );
}

function Groups({ content, queue }: { content: DeadView; queue?: string }) {
  if (content.total === 0) {
    return (
      <Empty title="No job is dead">
        <p>
          Jobs come here when they have no attempts left, when they fail for good, or when they crash their workers.
        </p>
      </Empty>
    );
  }
  return (
    <Section title="By error">
      {content.looked < content.total && (
        <p class="muted">
          The newest {count(content.looked)} of {count(content.total)} were looked at; actions on a group look at all.
        </p>
      )}
      <ul class="groups">
        {content.groups.map((group) => (
          <ErrorGroup key={group.key} group={group} queue={queue} />
        ))}
      </ul>
    </Section>
  );
}
