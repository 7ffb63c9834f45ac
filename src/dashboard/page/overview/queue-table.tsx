import type { QueueRow } from '../../api.js';
import { Badge, STATES } from '../components/badge.js';
import { limitsText } from '../components/limits.js';
import { QueueLink } from '../components/name.js';
import { Sparkline } from '../components/sparkline.js';
import { type Head, Table } from '../components/table.js';
import { compact, count, rate } from '../lib/format.js';
import { href } from '../lib/router.js';
import { duration, rough } from '../lib/time.js';

const HEADS: readonly Head[] = [
  ['Queue', 'wide'],
  ...STATES.map((state) => [state, 'figure'] as const),
  ['oldest', 'figure', 'How long the next job to run has been waiting'],
  ['in', 'figure', 'Jobs added, over the last minute'],
  ['out', 'figure', 'Jobs ended well, over the last minute'],
  ['failing', 'figure', 'Attempts that failed, over the last minute'],
  ['workers', 'figure'],
  ['last hour', 'spark'],
];

/** Queues with their figures; on a phone each row becomes a card. */
export function QueueTable({ queues }: { queues: readonly QueueRow[] }) {
  return (
    <Table label="Queues" class="cards queue-table" heads={HEADS}>
      {queues.map((queue) => (
        <Row key={queue.name} queue={queue} />
      ))}
    </Table>
  );
}

function Row({ queue }: { queue: QueueRow }) {
  const limits = limitsText(queue.limits);
  const starving = queue.counts.ready > 0 && queue.workers === 0;
  return (
    <tr>
      <th scope="row" class="wide card-title">
        <QueueLink name={queue.name} row />
        <span class="row-notes">
          {queue.paused && <Badge text="paused" tone="warn" />}
          {queue.brokenUntil !== undefined && <Badge text="breaker open" tone="bad" />}
          {limits !== '' && <span class="muted limits">{limits}</span>}
        </span>
      </th>
      {STATES.map((state) => (
        <td key={state} class="figure" data-label={state}>
          <a
            class={`count ${queue.counts[state] === 0 ? 'zero' : `count-${state}`}`}
            href={href('queue', { name: queue.name, state })}
            title={`${count(queue.counts[state])} ${state}`}
          >
            {compact(queue.counts[state])}
          </a>
        </td>
      ))}
      <Figure label="oldest" zero={queue.oldest === undefined} title={queue.oldest && duration(queue.oldest)}>
        {queue.oldest === undefined ? '–' : rough(queue.oldest)}
      </Figure>
      <Figure label="in" zero={queue.rateIn === 0}>
        {rate(queue.rateIn)}
      </Figure>
      <Figure label="out" zero={queue.rateOut === 0}>
        {rate(queue.rateOut)}
      </Figure>
      <Figure label="failing" zero={queue.rateFailed === 0} tone="bad">
        {rate(queue.rateFailed)}
      </Figure>
      <Figure label="workers" zero={queue.workers === 0 && !starving} tone={starving ? 'bad' : ''}>
        {count(queue.workers)}
      </Figure>
      <td class="spark" data-label="last hour">
        {queue.doneByMinute ? <Sparkline values={queue.doneByMinute} /> : <span class="zero">–</span>}
      </td>
    </tr>
  );
}

interface FigureProps {
  label: string;
  zero: boolean;
  tone?: string;
  title?: string | number;
  children: string;
}

function Figure({ label, zero, tone = '', title, children }: FigureProps) {
  return (
    <td
      class={`figure ${zero ? 'zero' : tone}`}
      data-label={label}
      title={title === undefined ? undefined : String(title)}
    >
      {children}
    </td>
  );
}
