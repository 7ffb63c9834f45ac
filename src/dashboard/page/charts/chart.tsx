import { useEffect, useRef, useState } from 'preact/hooks';
import { dark } from '../lib/theme.js';
import type { Plot } from './plot.js';
import type { ChartContent, Line } from './series.js';

/** A chart with its title and a legend that shows the values at the pointer, or else the newest ones. */
export function Chart({ content }: { content: ChartContent }) {
  const [point, setPoint] = useState<number | null>(null);
  const place = usePlot(content, setPoint);
  const valueText = (line: Line) => {
    const value = point === null ? line.values.findLast((one) => one !== null) : line.values[point];
    return value === undefined || value === null ? '–' : content.format(value);
  };
  return (
    <figure class="chart card">
      <figcaption>
        <h3>{content.title}</h3>
        <ul class="legend">
          {content.lines.map((line) => (
            <li key={line.label}>
              <svg class="swatch" viewBox="0 0 18 4" aria-hidden="true">
                <line
                  x1="0"
                  x2="18"
                  y1="2"
                  y2="2"
                  stroke={`var(${line.colour})`}
                  stroke-dasharray={line.dash?.join(' ')}
                />
              </svg>
              {line.label} <span class="legend-value">{valueText(line)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="chart-place" ref={place} role="img" aria-label={`Chart: ${content.title}`} />
    </figure>
  );
}

/** Draws into the element that gets the returned reference; anew when the theme or the lines change. */
function usePlot(content: ChartContent, onPoint: (index: number | null) => void) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot>(undefined);
  const latest = useRef(content);
  latest.current = content;
  const look = `${content.title} ${dark.value}`;
  // Drawn anew only when the look changes: new data are put into what is there.
  useEffect(() => {
    let gone = false;
    void import('./plot.js').then(({ draw }) => {
      // The element goes before this hears of it.
      if (!gone && place.current) plot.current = draw(place.current, latest.current, onPoint);
    });
    return () => {
      gone = true;
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [look]);
  useEffect(() => plot.current?.update(content), [content]);
  return place;
}
