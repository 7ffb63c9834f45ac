// The figures of a run as Markdown tables, one per store.
import { show } from '../report.mjs';

/** `redis drain, concurrency 100 (add)` is the store `redis`, the measurement in the middle and our subject `add`. */
const CASE = /^(\S+) (.*) \((.*)\)$/;

export function storeOf(line) {
  return CASE.exec(line.case)[1];
}

export function measurementOf(line) {
  return CASE.exec(line.case)[2];
}

export function subjectOf(line) {
  return CASE.exec(line.case)[3];
}

export function markdownTables(figures) {
  const stores = [...new Set(figures.map(storeOf))];
  return stores
    .map((store) =>
      section(
        store,
        figures.filter((line) => storeOf(line) === store),
      ),
    )
    .join('\n\n');
}

function section(store, lines) {
  const peers = [...new Set(lines.map((line) => line.peer))];
  const head = ['case', 'ours', ...peers];
  const rows = [...new Set(lines.map((line) => line.case))].map((name) =>
    row(
      lines.filter((line) => line.case === name),
      peers,
    ),
  );
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return `### ${title(store)}\n\n${table.join('\n')}`;
}

function title(store) {
  return { redis: 'Redis', sqlite: 'SQLite', postgres: 'PostgreSQL' }[store] ?? store;
}

function row(lines, peers) {
  const [first] = lines;
  const name = `${measurementOf(first)}, ${first.unit} (${subjectOf(first)})`;
  return [
    name,
    `**${show(first.ours, first.unit)}**`,
    ...peers.map((peer) => cell(lines.find((line) => line.peer === peer))),
  ];
}

function cell(line) {
  if (!line || line.value === null) return '';
  const times = line.ratio === null ? '' : ` (${Number(line.ratio.toPrecision(2))}x)`;
  return `${show(line.value, line.unit)}${times}`;
}
