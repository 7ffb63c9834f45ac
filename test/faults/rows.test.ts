import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EXPERIMENTS } from './experiments/all.js';

interface SuiteRow {
  row: number;
  file: string;
  title: string;
}

interface PlantedBug {
  name: string;
  file: string;
  find: string;
  put: string;
}

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const suite = JSON.parse(read('test/faults/suite.json')) as SuiteRow[];
const bugs = JSON.parse(read('test/faults/planted-bugs.json')) as PlantedBug[];

describe('the table of faults', () => {
  it('has an experiment or a test for each of its rows', () => {
    const rows = new Set([...EXPERIMENTS, ...suite].map(({ row }) => row));
    expect([...rows].sort((a, b) => a - b)).toEqual(Array.from({ length: 44 }, (_x, i) => i + 1));
  });

  it.each(suite)('row $row names tests that exist', ({ file, title }) => {
    expect(read(file)).toContain(title);
  });
});

describe('the planted bugs', () => {
  it('are at least thirty', () => {
    expect(bugs.length).toBeGreaterThanOrEqual(30);
  });

  it.each(bugs)('$name: $file is still as the bug expects it', ({ file, find, put }) => {
    expect(read(`dist/${file}`)).toContain(find);
    expect(put).not.toBe(find);
  });
});
