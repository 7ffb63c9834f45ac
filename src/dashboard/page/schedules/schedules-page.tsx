import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { Skeleton } from '../components/skeleton.js';
import { Page } from '../frame/page.js';
import { useView } from '../lib/live.js';
import { location } from '../lib/router.js';
import { ScheduleTable } from './schedule-table.js';

export function SchedulesPage() {
  const queue = location.value.query.get('queue') ?? undefined;
  const { content } = useView('schedules', queue === undefined ? {} : { queue });
  return (
    <Page title="Schedules">
      {!content && <Skeleton rows={6} />}
      {content && content.schedules.length > 0 && <ScheduleTable schedules={content.schedules} withQueue />}
      {content?.schedules.length === 0 && <NoSchedules />}
    </Page>
  );
}

function NoSchedules() {
  return (
    <Empty title="There is no schedule">
      <p>A schedule adds a job again and again: at times of a cron expression, or in an interval.</p>
      <Command line="npx crore schedule add nightly reports --cron '0 4 * * *' --timezone Europe/Berlin" />
      <Command line={`npx crore schedule add poll feeds '{"feed":"acme"}' --every 10m`} />
    </Empty>
  );
}
