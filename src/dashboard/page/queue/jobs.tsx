import { useRef } from 'preact/hooks';
import type { State } from '../../../job/job.js';
import type { Counts } from '../../../store/store.js';
import type { JobFilter } from '../../api.js';
import { MEANINGS, STATES } from '../components/badge.js';
import { Empty } from '../components/empty.js';
import { Pager } from '../components/pager.js';
import { Skeleton } from '../components/skeleton.js';
import { Section } from '../frame/page.js';
import { compact, count } from '../lib/format.js';
import { useCurrentInView } from '../lib/in-view.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { BulkButtons } from './bulk-buttons.js';
import { FilterBar, filterOf, isFiltered } from './filter-bar.js';
import { JobTable } from './job-table.js';
import { useLookFurther } from './look-further.js';
import { SelectionBar, useSelection } from './selection.js';

/** The jobs of a queue. If the address names no state, one is chosen when the counts are known, and then kept. */
export function Jobs({ queue, counts }: { queue: string; counts?: Counts }) {
  const chosen = useRef<State>(undefined);
  if (counts) chosen.current ??= likelyState(counts);
  const filter = filterOf(location.value.query, chosen.current);
  if (filter) return <JobsOf queue={queue} counts={counts} filter={filter} />;
  return (
    <Section title="Jobs">
      <Skeleton rows={10} />
    </Section>
  );
}

/** The jobs in one state, filtered, page by page. */
function JobsOf({ queue, counts, filter }: { queue: string; counts?: Counts; filter: JobFilter }) {
  const cursor = location.value.query.get('cursor') ?? undefined;
  const { content, stale, refusal } = useView('jobs', { queue, ...filter, cursor });
  const selection = useSelection(content?.jobs ?? [], JSON.stringify([filter, cursor]));
  const searching = useLookFurther(stale ? undefined : content, JSON.stringify(filter));
  return (
    <Section title="Jobs" beside={<BulkButtons queue={queue} filter={filter} known={counts?.[filter.state]} />}>
      <Tabs filter={filter} counts={counts} />
      <FilterBar />
      <div class={stale ? 'stale' : ''}>
        {refusal && <p class="bad">{refusal.message}</p>}
        {!content && !refusal && <Skeleton rows={8} />}
        <SelectionBar selection={selection} queue={queue} state={filter.state} />
        {content && content.jobs.length > 0 && (
          <JobTable jobs={content.jobs} state={filter.state} selection={selection} />
        )}
        {content?.jobs.length === 0 && (
          <NoJobs filter={filter} searching={searching || stale} more={content.cursor !== undefined} />
        )}
      </div>
      <Pager parameter="cursor" next={content?.cursor} />
    </Section>
  );
}

/** What somebody most likely wants to see first: what has failed, then what runs, then what waits. */
function likelyState(counts: Counts): State {
  const order: State[] = ['dead', 'active', 'ready', 'scheduled', 'blocked', 'done', 'cancelled'];
  return order.find((state) => counts[state] > 0) ?? 'ready';
}

function NoJobs({ filter, searching, more }: { filter: JobFilter; searching: boolean; more: boolean }) {
  if (searching) return <Empty title="Searching …" />;
  if (more) return <Empty title="None among those looked at so far: Next looks further" />;
  return <Empty title={isFiltered(filter) ? `No ${filter.state} job matches` : `No job is ${filter.state}`} />;
}

function Tabs({ filter, counts }: { filter: JobFilter; counts?: Counts }) {
  const bar = useCurrentInView<HTMLElement>(filter.state);
  return (
    <nav class="tabs" ref={bar} aria-label="States">
      {STATES.map((state) => (
        <a
          key={state}
          href={tabHref(state, filter)}
          aria-current={state === filter.state ? 'true' : undefined}
          title={MEANINGS[state]}
        >
          {state}
          <span
            class={`tab-count ${counts?.[state] ? `state-${state}` : 'zero'}`}
            title={counts && count(counts[state])}
          >
            {counts ? compact(counts[state]) : '–'}
          </span>
        </a>
      ))}
    </nav>
  );
}

/** The filter stays when another state is chosen, the page does not. */
function tabHref(state: State, filter: JobFilter): string {
  const { query } = location.value;
  return href('queue', { name: query.get('name') ?? '', range: query.get('range') ?? '', ...filter, state });
}
