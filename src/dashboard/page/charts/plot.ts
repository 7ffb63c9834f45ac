/** Draws a chart on a canvas. Loaded when the first chart comes on the screen. */
import uPlot from 'uplot';
import type { ChartContent, Line } from './series.js';

export interface Plot {
  update: (content: ChartContent) => void;
  destroy: () => void;
}

const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DAY = 86_400_000;

/** `onPoint` hears which point the pointer is at, or null. */
export function draw(place: HTMLElement, content: ChartContent, onPoint: (index: number | null) => void): Plot {
  const plot = new uPlot(options(place, content, onPoint), dataOf(content), place);
  const observer = new ResizeObserver(() => plot.setSize(sizeOf(place)));
  observer.observe(place);
  return {
    update: (next) => plot.setData(dataOf(next)),
    destroy: () => {
      observer.disconnect();
      plot.destroy();
    },
  };
}

function options(place: HTMLElement, content: ChartContent, onPoint: (index: number | null) => void): uPlot.Options {
  const colour = coloursOf(place);
  return {
    ...sizeOf(place),
    ms: 1,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, sync: { key: 'history' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [xAxis(colour), yAxis(colour, content)],
    series: [{}, ...content.lines.map((line) => seriesOf(line, colour))],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

type Colour = (property: string) => string;

function coloursOf(place: HTMLElement): Colour {
  const style = getComputedStyle(place);
  return (property) => style.getPropertyValue(property).trim();
}

function seriesOf({ label, colour, dash, fill }: Line, colours: Colour): uPlot.Series {
  const stroke = colours(colour);
  return {
    label,
    stroke,
    width: 1.5,
    ...(dash ? { dash } : {}),
    ...(fill ? { fill: `${stroke}1f` } : {}),
    points: { show: isAlone },
    spanGaps: false,
  };
}

/** A value without neighbours has no line: without its point it would not be seen. */
function isAlone(plot: uPlot, series: number): boolean {
  return Array.from<unknown>(plot.data[series]!).filter((value) => value != null).length < 3;
}

function xAxis(colour: Colour): uPlot.Axis {
  return {
    ...axis(colour),
    space: 64,
    size: 28,
    grid: { show: false },
    values: (plot, splits) => {
      const { min = 0, max = 0 } = plot.scales.x!;
      const format = max - min > 2 * DAY ? days : minutes;
      return splits.map((at) => format.format(at));
    },
  };
}

function yAxis(colour: Colour, { format, steps }: ChartContent): uPlot.Axis {
  return {
    ...axis(colour),
    size: 58,
    space: 34,
    ...(steps ? { incrs: steps } : {}),
    values: (_plot, splits) => splits.map(format),
  };
}

function axis(colour: Colour): uPlot.Axis {
  return {
    stroke: colour('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  };
}

function dataOf({ times, lines }: ChartContent): uPlot.AlignedData {
  return [times, ...lines.map(({ values }) => values)];
}

function sizeOf(place: HTMLElement): { width: number; height: number } {
  return { width: Math.max(120, place.clientWidth), height: place.clientHeight };
}
