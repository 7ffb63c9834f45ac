import type { QueueView } from '../../api.js';
import { History } from '../charts/history.js';
import { AttentionList } from '../components/attention.js';
import { Badge } from '../components/badge.js';
import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { limitsText } from '../components/limits.js';
import { Skeleton } from '../components/skeleton.js';
import { Page, Section } from '../frame/page.js';
import { mayAct } from '../lib/api.js';
import { plural, rate } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { quoted, storeOption } from '../lib/store-option.js';
import { duration } from '../lib/time.js';
import { ScheduleTable } from '../schedules/schedule-table.js';
import { WorkerTable } from '../workers/worker-table.js';
import { DangerZone } from './danger-zone.js';
import { Jobs } from './jobs.js';
import { LimitsEditor } from './limits-editor.js';
import { PauseButton } from './pause-button.js';

export function QueuePage() {
  const name = location.value.query.get('name') ?? '';
  const { content, refusal } = useView('queue', { name });
  const trail = <a href={href('')}>Queues</a>;
  if (content?.known === false || refusal) {
    return (
      <Page title={name} trail={trail}>
        <Empty title="There is no such queue">
          <p>{refusal?.message ?? 'It has no jobs, no workers and no settings. A queue begins with its first job.'}</p>
        </Empty>
      </Page>
    );
  }
  return (
    <Page
      title={name}
      trail={trail}
      beside={content && <Stopped queue={content.queue} />}
      actions={
        content &&
        mayAct() && (
          <PauseButton queue={name} paused={content.queue.paused} broken={content.queue.brokenUntil !== undefined} />
        )
      }
    >
      {content ? <Figures content={content} /> : <Skeleton rows={1} />}
      {content && <AttentionList items={content.attention} />}
      <History queue={name} />
      <Jobs queue={name} counts={content?.queue.counts} />
      {content && <Settings content={content} />}
      {content && <Around content={content} />}
    </Page>
  );
}

function Stopped({ queue }: { queue: QueueView['queue'] }) {
  return (
    <>
      {queue.paused && <Badge text="paused" tone="warn" />}
      {queue.brokenUntil !== undefined && <Badge text="breaker open" tone="bad" />}
    </>
  );
}

/** The most important figures in a line. */
function Figures({ content: { queue } }: { content: QueueView }) {
  return (
    <dl class="figures">
      <Figure label="in" value={rate(queue.rateIn)} />
      <Figure label="out" value={rate(queue.rateOut)} />
      <Figure label="failing" value={rate(queue.rateFailed)} bad={queue.rateFailed > 0} />
      <Figure label="oldest waiting" value={queue.oldest === undefined ? '–' : duration(queue.oldest)} />
      <Figure label="workers" value={String(queue.workers)} bad={queue.workers === 0 && queue.counts.ready > 0} />
      <Figure label="limits" value={limitsText(queue.limits) || 'none'} />
    </dl>
  );
}

function Figure({ label, value, bad = false }: { label: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd class={bad ? 'bad' : ''}>{value}</dd>
    </div>
  );
}

function Settings({ content: { queue } }: { content: QueueView }) {
  if (!mayAct()) return null;
  return (
    <Section title="Settings">
      <LimitsEditor queue={queue.name} limits={queue.limits} />
      <DangerZone queue={queue.name} />
    </Section>
  );
}

function Around({ content: { workers, schedules, queue } }: { content: QueueView }) {
  return (
    <>
      <Section
        title="Workers"
        beside={<a href={href('workers', { queue: queue.name })}>{plural(workers.length, 'worker')}</a>}
      >
        {workers.length > 0 ? (
          <WorkerTable workers={workers} />
        ) : (
          <>
            <p class="muted">
              No worker is connected to this queue. One is started with queue.work(), or for any executable:
            </p>
            <Command line={`npx crore work ${quoted(queue.name)}${storeOption()} -- echo {}`} />
          </>
        )}
      </Section>
      <Section title="Schedules">
        {schedules.length > 0 ? (
          <ScheduleTable schedules={schedules} />
        ) : (
          <p class="muted">No schedule adds jobs to it.</p>
        )}
      </Section>
    </>
  );
}
