const WIDTH = 84;
const HEIGHT = 22;

/** Jobs done in each of the last minutes, as a tiny line. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(...values, 1);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${y(value / most).toFixed(1)}`).join(' ');
  const total = values.reduce((sum, value) => sum + value, 0);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${total} done in the last hour`}>
      <title>{`${total.toLocaleString('en')} done in the last hour, at most ${most.toLocaleString('en')} in a minute`}</title>
      <polyline points={points} />
    </svg>
  );
}

function y(part: number): number {
  return HEIGHT - 2 - part * (HEIGHT - 4);
}
