// npm run bench -- publish FIGURES: writes the tables of docs/performance.md and its pictures from one run of
// `npm run bench -- --json`, so that every figure there comes from the same run. The output of `npm run bench -- growth --json` becomes its lines, and that of
// `npm run bench -- horizon --json` the pictures of docs/postgres.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { horizonPicture } from './horizon-picture.mjs';
import { growthPicture } from './lines.mjs';
import { markdownTables, subjectOf } from './markdown.mjs';
import { picture } from './picture.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = `${root}docs/performance.md`;

function read(file) {
  // npm says what it runs, in lines that begin with '>'.
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => !/^(> .*)?$/.test(line));
  const entries = lines.map((line, i) => {
    try {
      return JSON.parse(line);
    } catch {
      throw new Error(`line ${i + 1} of ${file} is not JSON: give the output of npm run bench -- --json`);
    }
  });
  const machine = entries.find((entry) => entry.machine)?.machine;
  const figures = entries.filter((entry) => entry.case && entry.peer);
  const growth = entries.filter((entry) => entry.growth);
  const samples = entries.filter((entry) => entry.horizon);
  if (!machine || figures.length + growth.length + samples.length === 0)
    throw new Error(`${file} has no figures: give the output of npm run bench -- --json`);
  return { machine, figures, growth, samples };
}

/** Ceilings are no peers, and plainjob as it comes does not wait for the disk: its other form does, as ours. */
const NOT_COMPARED = /^(ceiling.*|plainjob)$/;

/** The best peer of each case of the jobs that are removed when they are done, as those of the peers are. */
export function bestPeers(figures) {
  const cases = [...new Set(figures.filter((line) => subjectOf(line) === 'add, forgotten').map((line) => line.case))];
  return cases.flatMap((name) => {
    const peers = figures.filter((line) => line.case === name && !NOT_COMPARED.test(line.peer) && line.ratio !== null);
    const best = peers.toSorted((a, b) => a.ratio - b.ratio)[0];
    return best ? [best] : [];
  });
}

/** Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`. */
function fillIn(text, name, content) {
  const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [from, to] = [text.indexOf(start), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no place ${start} … ${end}`);
  return `${text.slice(0, from + start.length)}\n\n${content}\n\n${text.slice(to)}`;
}

function machineText({ cores, processor, memory, load, versions }) {
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${cores} cores (${processor}), ${memory} of memory, load average ${load} before the start. ${list.join(', ')}.`;
}

function publishFigures(machine, figures) {
  const page = fillIn(readFileSync(PAGE, 'utf8'), 'machine', machineText(machine));
  writeFileSync(PAGE, fillIn(page, 'tables', markdownTables(figures)));
  writePictures('performance', (theme) => picture(bestPeers(figures), theme));
}

function publishGrowth(machine, growth) {
  writePictures('growth', (theme) => growthPicture(growth, theme));
  const images = ['light', 'dark'].map(
    (theme) => `![What a job costs as one thing grows](images/growth-${theme}.svg#gh-${theme}-mode-only)`,
  );
  const content = `${images.join('\n')}\n\nMeasured on ${machineText(machine)}`;
  writeFileSync(PAGE, fillIn(readFileSync(PAGE, 'utf8'), 'growth', content));
}

function writePictures(name, draw) {
  for (const theme of ['light', 'dark']) writeFileSync(`${root}docs/images/${name}-${theme}.svg`, draw(theme));
}

try {
  const [file] = process.argv.slice(2);
  if (!file) throw new Error('name the file with the output of npm run bench -- --json');
  const { machine, figures, growth, samples } = read(file);
  if (figures.length > 0) publishFigures(machine, figures);
  if (growth.length > 0) publishGrowth(machine, growth);
  if (samples.length > 0) writePictures('horizon', (theme) => horizonPicture(samples, theme));
} catch (error) {
  process.stderr.write(`bench: ${error.message}\n`);
  process.exitCode = 2;
}
