// Turns figures into ratios and ratios into text. A ratio says how many times better ours is, whether higher or lower
// is better.

/** One line per case and peer. */
export function compare(item, medians, peers) {
  const ours = medians.get(item.subject)?.[item.figure.key] ?? null;
  return peers.map((peer) => {
    const value = medians.get(peer)?.[item.figure.key] ?? null;
    const { unit, better } = item.figure;
    return { case: item.name, unit, ours: round(ours), peer, value: round(value), ratio: ratio(ours, value, better) };
  });
}

function ratio(ours, value, better) {
  if (ours === null || value === null) return null;
  return round(better === 'lower' ? value / ours : ours / value);
}

function round(value) {
  return value === null ? null : Number(value.toPrecision(4));
}

/** The median of each figure over the rounds. */
export function medianOf(rounds) {
  const keys = Object.keys(rounds[0]);
  return Object.fromEntries(keys.map((key) => [key, median(rounds.map((values) => values[key]))]));
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Formats a figure so that it is short enough to read. */
export function show(value, unit) {
  if (value === null) return '-';
  if (unit === 'jobs/s' && value >= 1000) return `${Number((value / 1000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

/** One table per store. */
export function tables(lines) {
  const stores = [...new Set(lines.map(storeOf))];
  return stores.map((store) => table(lines.filter((line) => storeOf(line) === store))).join('\n\n');
}

function storeOf(line) {
  return line.case.split(' ', 1)[0];
}

/** One row per case: our figure, then each peer's figure and how many times better ours is. */
function table(lines) {
  const peers = [...new Set(lines.map((line) => line.peer))];
  const head = ['case', 'unit', 'ours', ...peers];
  const rows = [...new Set(lines.map((line) => line.case))].map((name) => row(lines, name, peers));
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((cells) => cells[column].length)));
  const text = (cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(text).join('\n');
}

function row(lines, name, peers) {
  const mine = lines.filter((line) => line.case === name);
  const [{ unit, ours }] = mine;
  const cells = peers.map((peer) => cell(mine.find((line) => line.peer === peer)));
  return [name, unit, show(ours, unit), ...cells];
}

function cell(line) {
  if (!line) return '';
  const value = show(line.value, line.unit);
  return line.ratio === null ? value : `${value} (${Number(line.ratio.toPrecision(3))}x)`;
}
