// Lines: what a job costs as one thing grows, one panel for each thing, both scales logarithmic.
const THEMES = {
  light: {
    back: '#ffffff',
    text: '#1f2328',
    faint: '#656d76',
    grid: '#d1d9e0',
    redis: '#cf222e',
    sqlite: '#0969da',
    postgres: '#1a7f37',
  },
  dark: {
    back: '#0d1117',
    text: '#e6edf3',
    faint: '#8d96a0',
    grid: '#30363d',
    redis: '#f85149',
    sqlite: '#58a6ff',
    postgres: '#3fb950',
  },
};
const TITLES = {
  backlog: 'jobs waiting',
  queues: 'queues',
  workers: 'workers on the queue',
  bytes: 'bytes of payload',
  groups: 'groups',
  kept: 'results kept',
};
const [PANEL_WIDTH, PANEL_HEIGHT, ACROSS, TOP] = [270, 170, 3, 56];
const [LEFT, RIGHT, ABOVE, BELOW] = [44, 14, 24, 24];

const log = (value) => Math.log10(Math.max(1, value));
const escapeText = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value));

export function growthPicture(lines, theme) {
  const colours = THEMES[theme];
  const axes = [...new Set(lines.map((line) => line.growth))];
  const [width, height] = [ACROSS * PANEL_WIDTH, TOP + Math.ceil(axes.length / ACROSS) * PANEL_HEIGHT];
  const most = Math.ceil(log(Math.max(...lines.map((line) => line.cpu))));
  const title = 'CPU time of a job as one thing grows';
  const panels = axes.map((axis, i) => {
    const place = `translate(${(i % ACROSS) * PANEL_WIDTH} ${TOP + Math.floor(i / ACROSS) * PANEL_HEIGHT})`;
    const own = lines.filter((line) => line.growth === axis);
    return `<g transform="${place}">${panel(TITLES[axis] ?? axis, own, most, colours)}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}" font-family="system-ui, sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="${colours.back}"/>`,
    text(16, 24, title, colours.text, 'font-size="15" font-weight="600"'),
    text(
      16,
      42,
      'µs from add to its end, process and server together; red: Redis, blue: SQLite, green: PostgreSQL',
      colours.faint,
    ),
    ...panels,
    '</svg>\n',
  ].join('\n');
}

function panel(title, lines, most, colours) {
  const values = [...new Set(lines.map((line) => line.at))].toSorted((a, b) => a - b);
  const [from, to] = [log(values[0]), log(values.at(-1))];
  const share = (value) => (to === from ? 0.5 : (log(value) - from) / (to - from));
  const x = (value) => Math.round(LEFT + share(value) * (PANEL_WIDTH - LEFT - RIGHT));
  const y = (cpu) => Math.round(PANEL_HEIGHT - BELOW - (log(cpu) / most) * (PANEL_HEIGHT - ABOVE - BELOW));
  const grid = Array.from({ length: most + 1 }, (_x, power) => gridLine(10 ** power, y(10 ** power), colours));
  const ticks = values.map((value) =>
    text(x(value), PANEL_HEIGHT - 8, short(value), colours.faint, 'text-anchor="middle"'),
  );
  const stores = [...new Set(lines.map((line) => line.store))];
  const paths = stores.map((store) => {
    const points = lines.filter((line) => line.store === store).map((line) => `${x(line.at)},${y(line.cpu)}`);
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colours[store] ?? colours.text}" stroke-width="2"/>`;
  });
  return [text(LEFT, 14, title, colours.text), ...grid, ...ticks, ...paths].join('');
}

function gridLine(value, at, colours) {
  const line = `<line x1="${LEFT}" y1="${at}" x2="${PANEL_WIDTH - RIGHT}" y2="${at}" stroke="${colours.grid}" stroke-width="0.5"/>`;
  return line + text(LEFT - 6, at + 4, short(value), colours.faint, 'text-anchor="end"');
}

function text(at, y, content, colour, more = '') {
  return `<text x="${at}" y="${y}" fill="${colour}" ${more}>${escapeText(content)}</text>`;
}
