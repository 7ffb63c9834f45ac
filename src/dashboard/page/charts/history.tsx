import { useMemo } from 'preact/hooks';
import type { HistoryRange, HistoryView } from '../../api.js';
import { Scroll } from '../components/scroll.js';
import { Section } from '../frame/page.js';
import { useRead } from '../lib/read.js';
import { hrefWith, location, replace } from '../lib/router.js';
import { Chart } from './chart.js';
import { type ChartContent, depthChart, rateChart, timeChart } from './series.js';

const RANGES: readonly HistoryRange[] = ['hour', 'day', 'month'];
const EVERY_MS: Record<HistoryRange, number> = { hour: 5_000, day: 60_000, month: 300_000 };

/** The charts of a queue, or of all of them, with the range in the address. */
export function History({ queue }: { queue?: string }) {
  const range = rangeOf(location.value.query.get('range'));
  const parameters = queue === undefined ? { range } : { queue, range };
  const history = useRead('history', parameters, EVERY_MS[range]);
  const most = queue === undefined ? 2 : 4;
  return (
    <Section title="History" beside={<RangeSwitch range={range} />}>
      {history?.kept === false ? (
        <p class="muted">This store keeps no history: look at the dashboard of the job server that it is behind.</p>
      ) : (
        <Scroll class={`charts charts-${most}`} label="Charts">
          {history ? <Charts history={history} most={most} /> : <Places most={most} />}
        </Scroll>
      )}
    </Section>
  );
}

function Charts({ history, most }: { history: HistoryView; most: number }) {
  const charts = useMemo(() => chartsOf(history).filter(isKnown).slice(0, most), [history, most]);
  return charts.map((content, index) => <Chart key={`${history.range} ${index}`} content={content} />);
}

function chartsOf(history: HistoryView) {
  return [
    rateChart(history),
    depthChart(history),
    timeChart(history, 'wait', 'Time until a job starts'),
    timeChart(history, 'run', 'Time that an attempt takes'),
  ];
}

/** Not every figure is known of all queues together. */
function isKnown({ lines }: ChartContent): boolean {
  return lines.some(({ values }) => values.some((value) => value !== null));
}

function Places({ most }: { most: number }) {
  return Array.from({ length: most }, (_, index) => <div key={index} class="chart card chart-waiting" />);
}

function RangeSwitch({ range }: { range: HistoryRange }) {
  return (
    <fieldset class="segmented" aria-label="Range of the charts">
      {RANGES.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === range}
          onClick={() => replace(hrefWith({ range: one === 'hour' ? undefined : one }))}
        >
          {one}
        </button>
      ))}
    </fieldset>
  );
}

function rangeOf(text: string | null): HistoryRange {
  return RANGES.find((range) => range === text) ?? 'hour';
}
