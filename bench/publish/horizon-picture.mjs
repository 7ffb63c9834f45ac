// Two panels of lines over time: buffers that a claim reads, and how long jobs wait, both on a logarithmic scale.
import { escapeText, THEMES, text } from './picture.mjs';

const WIDTH = 820;
const HEIGHT = 330;
const TOP = 64;
const BOTTOM = 284;
const PANELS = [
  { key: 'buffers', title: 'buffers read by a claim', left: 60, right: 390 },
  { key: 'p50', title: 'pickup latency p50, ms', left: 470, right: 800 },
];
const LINES = { light: ['#1a7f37', '#0969da', '#cf222e'], dark: ['#3fb950', '#58a6ff', '#f85149'] };

/** `samples`: `{ horizon, at, buffers, p50 }`, in the order in which they were taken. */
export function horizonPicture(samples, theme) {
  const colours = THEMES[theme];
  const names = [...new Set(samples.map(({ horizon }) => horizon))];
  const label = 'Beside an open transaction';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escapeText(label)}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="${colours.back}"/>`,
    text(
      16,
      24,
      'Jobs on Postgres at a steady rate beside an open transaction',
      colours.text,
      'font-size="15" font-weight="600"',
    ),
    text(16, 42, 'over time, logarithmic; nothing can be vacuumed', colours.faint),
    ...PANELS.map((panel) => drawPanel(panel, samples, names, theme)),
    ...names.map((name, i) => legend(name, i, theme)),
    '</svg>\n',
  ].join('\n');
}

function drawPanel({ key, title, left, right }, samples, names, theme) {
  const colours = THEMES[theme];
  const known = samples.filter((sample) => sample[key] > 0);
  const values = known.map((sample) => Math.log10(sample[key]));
  const [least, most] = [
    Math.floor(Math.min(...values)),
    Math.max(Math.floor(Math.min(...values)) + 1, Math.ceil(Math.max(...values))),
  ];
  const end = Math.max(...known.map(({ at }) => at));
  const x = (at) => Math.round(left + (at / end) * (right - left));
  const y = (value) => Math.round(BOTTOM - ((Math.log10(value) - least) / (most - least)) * (BOTTOM - TOP));
  const ticks = Array.from({ length: most - least + 1 }, (_, i) => 10 ** (least + i));
  const grid = ticks.map(
    (tick) =>
      `<line x1="${left}" y1="${y(tick)}" x2="${right}" y2="${y(tick)}" stroke="${colours.grid}" stroke-width="0.5"/>${text(left - 6, y(tick) + 4, String(tick), colours.faint, 'text-anchor="end" font-size="10"')}`,
  );
  const lines = names.map((name, i) => {
    const points = known.filter(({ horizon }) => horizon === name).map((sample) => `${x(sample.at)},${y(sample[key])}`);
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${LINES[theme][i]}" stroke-width="2"/>`;
  });
  const axis = text(right, BOTTOM + 16, `${end} s`, colours.faint, 'text-anchor="end" font-size="10"');
  return [text(left, TOP - 8, title, colours.text), ...grid, ...lines, axis].join('\n');
}

function legend(name, i, theme) {
  const at = 60 + i * 200;
  return `<rect x="${at}" y="308" width="14" height="4" fill="${LINES[theme][i]}"/>${text(at + 20, 314, name, THEMES[theme].text)}`;
}
