import type { OverviewView } from '../../api.js';
import { History } from '../charts/history.js';
import { AttentionList } from '../components/attention.js';
import { FilterField } from '../components/filter-field.js';
import { Pager } from '../components/pager.js';
import { Skeleton } from '../components/skeleton.js';
import { FoundJobs } from '../find/found-jobs.js';
import { Page, Section } from '../frame/page.js';
import { useTellDeadCount } from '../lib/dead-count.js';
import { count, plural } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { location } from '../lib/router.js';
import { FirstSteps } from './first-steps.js';
import { QueueTable } from './queue-table.js';
import { Tiles } from './tiles.js';

export function OverviewPage() {
  const { query } = location.value;
  const { content, stale } = useView('overview', {
    search: query.get('search') ?? undefined,
    after: query.get('after') ?? undefined,
  });
  useTellDeadCount(content?.counts.dead);
  if (content?.total === 0) {
    return (
      <Page title="Overview">
        <FirstSteps />
      </Page>
    );
  }
  return (
    <Page title="Overview">
      <Section title="Needs attention">
        {content ? <AttentionList items={content.attention} calm="Nothing needs attention." /> : <Skeleton rows={8} />}
      </Section>
      {/* Nobody knows how much needs attention: what is below would jump. */}
      {content && (
        <>
          <Tiles content={content} />
          <History />
          <Queues content={content} stale={stale} />
        </>
      )}
    </Page>
  );
}

function Queues({ content, stale }: { content: OverviewView; stale: boolean }) {
  const search = location.value.query.get('search') ?? '';
  return (
    <Section title="Queues" beside={<span class="muted">{amount(content)}</span>}>
      <div class="filters">
        <FilterField
          parameter="search"
          resets="after"
          label="Search"
          placeholder="Part of a queue's name, or a job's id"
          main
        />
      </div>
      <div class={stale ? 'stale' : ''}>
        {content.queues.length > 0 && <QueueTable queues={content.queues} />}
        {content.queues.length === 0 && (
          <>
            <p class="muted">No queue has this in its name. Jobs with this id:</p>
            <FoundJobs key={search} id={search} />
          </>
        )}
      </div>
      <Pager parameter="after" next={content.more ? content.queues.at(-1)?.name : undefined} />
    </Section>
  );
}

function amount({ total, matching }: OverviewView): string {
  return matching === total ? plural(total, 'queue') : `${count(matching)} of ${plural(total, 'queue')}`;
}
