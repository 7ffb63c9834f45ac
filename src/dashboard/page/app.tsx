import type { ComponentType } from 'preact';
import { Empty } from './components/empty.js';
import { Skeleton } from './components/skeleton.js';
import { DeadPage } from './dead/dead-page.js';
import { FindPage } from './find/find-page.js';
import { Banner } from './frame/banner.js';
import { BulkPlace } from './frame/bulk.js';
import { ConfirmPlace } from './frame/confirm.js';
import { Help } from './frame/help.js';
import { Nav } from './frame/nav.js';
import { Page } from './frame/page.js';
import { Toasts } from './frame/toasts.js';
import { JobPage } from './job/job-page.js';
import { refused, session } from './lib/api.js';
import { lazy } from './lib/lazy.js';
import { href, location } from './lib/router.js';
import { LogInPage } from './log-in/log-in-page.js';
import { OverviewPage } from './overview/overview-page.js';
import { QueuePage } from './queue/queue-page.js';
import { SchedulesPage } from './schedules/schedules-page.js';
import { WorkersPage } from './workers/workers-page.js';

const flows = () => import('./flows/index.js');
const rings = () => import('./rings/index.js');

const PAGES: Record<string, ComponentType> = {
  '': OverviewPage,
  queue: QueuePage,
  job: JobPage,
  dead: DeadPage,
  workers: WorkersPage,
  schedules: SchedulesPage,
  find: FindPage,
  flows: lazy(flows, (module) => module.FlowsPage),
  flow: lazy(flows, (module) => module.FlowPage),
  rings: lazy(rings, (module) => module.RingsPage),
  ring: lazy(rings, (module) => module.RingPage),
};

/** What makes a page another one, beside its path: everything else in the query only filters it. */
const IDENTITY = ['name', 'queue', 'id'];

export function App() {
  const { path, query } = location.value;
  if (refused.value !== undefined) return <Refused text={refused.value} />;
  if (path === 'login') return <LogInPage />;
  const Shown = PAGES[path] ?? NoPage;
  const key = JSON.stringify([
    path,
    ...(path === 'queue' ? [query.get('name')] : IDENTITY.map((name) => query.get(name))),
  ]);
  return (
    <>
      <Banner />
      <Nav />
      <main id="main" tabIndex={-1}>
        {session.value ? <Shown key={key} /> : <Skeleton rows={10} />}
      </main>
      <Toasts />
      <ConfirmPlace />
      <BulkPlace />
      <Help />
    </>
  );
}

function Refused({ text }: { text: string }) {
  return (
    <main id="main" class="log-in">
      <h1>{text}</h1>
    </main>
  );
}

function NoPage() {
  return (
    <Page title="No such page">
      <Empty title="There is no page at this address">
        <p>
          <a href={href('')}>Overview</a>
        </p>
      </Empty>
    </Page>
  );
}
