// Bars: how many times better we are than the best peer of each case, on a logarithmic scale.
import { measurementOf, storeOf } from './markdown.mjs';

export const THEMES = {
  light: { back: '#ffffff', text: '#1f2328', faint: '#656d76', grid: '#d1d9e0', ahead: '#1a7f37', behind: '#cf222e' },
  dark: { back: '#0d1117', text: '#e6edf3', faint: '#8d96a0', grid: '#30363d', ahead: '#3fb950', behind: '#f85149' },
};
const WIDTH = 820;
const LEFT = 300;
const RIGHT = 130;
const ROW = 22;
const TOP = 56;
/** From a quarter of the peer to a hundred times the peer. */
const [LEAST, MOST] = [0.25, 100];
const TICKS = [0.5, 1, 2, 5, 10, 20, 50];

const x = (ratio) => {
  const share =
    (Math.log(Math.min(MOST, Math.max(LEAST, ratio))) - Math.log(LEAST)) / (Math.log(MOST) - Math.log(LEAST));
  return Math.round(LEFT + share * (WIDTH - LEFT - RIGHT));
};
export const escapeText = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const times = (ratio) => `${Number(ratio.toPrecision(2))}x`;

export function picture(best, theme) {
  const colours = THEMES[theme];
  const height = TOP + best.length * ROW + 16;
  const heading = text(
    16,
    24,
    'Crore beside the best peer of each case',
    colours.text,
    'font-size="15" font-weight="600"',
  );
  const note = text(16, 42, 'times better, logarithmic; jobs that are removed when they are done', colours.faint);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Crore beside the best peer of each case" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="${colours.back}"/>`,
    heading,
    note,
    ...TICKS.map((tick) => gridLine(tick, height, colours)),
    ...best.map((line, i) => bar(line, TOP + i * ROW, colours)),
    '</svg>\n',
  ].join('\n');
}

function gridLine(tick, height, colours) {
  const width = tick === 1 ? 1.5 : 0.5;
  const line = `<line x1="${x(tick)}" y1="${TOP - 8}" x2="${x(tick)}" y2="${height - 14}" stroke="${tick === 1 ? colours.faint : colours.grid}" stroke-width="${width}"/>`;
  return line + text(x(tick), height - 3, `${tick}x`, colours.faint, 'text-anchor="middle" font-size="10"');
}

function bar(line, y, colours) {
  const [from, to] = [x(1), x(line.ratio)].sort((a, b) => a - b);
  const colour = line.ratio >= 1 ? colours.ahead : colours.behind;
  const label = text(LEFT - 8, y + 12, `${storeOf(line)}: ${measurementOf(line)}`, colours.text, 'text-anchor="end"');
  const shape = `<rect x="${from}" y="${y + 1}" width="${Math.max(1, to - from)}" height="${ROW - 8}" rx="2" fill="${colour}"/>`;
  return label + shape + text(Math.max(to, x(1)) + 6, y + 12, `${times(line.ratio)} ${line.peer}`, colours.text);
}

export function text(at, y, content, colour, more = '') {
  return `<text x="${at}" y="${y}" fill="${colour}" ${more}>${escapeText(content)}</text>`;
}
