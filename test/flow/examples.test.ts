import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { place } from './support.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const docs = readFileSync(join(root, 'docs', 'flows.md'), 'utf8');

describe('docs/flows.md', () => {
  it('shows the examples exactly as they are in the files', () => {
    const shown = [...docs.matchAll(/```\w+ file=(\S+)\n([\s\S]*?)```/g)];
    expect(shown.map(([, file]) => file)).toEqual([
      'examples/words/flow.yaml',
      'examples/site/flow.yaml',
      'examples/primes.ts',
      'examples/chain.ts',
    ]);
    for (const [, file, text] of shown) expect(text).toBe(readFileSync(join(root, file!), 'utf8'));
  });

  it('words: a list, a part for each item, and a report', () => {
    const here = place();
    cpSync(join(root, 'examples', 'words'), here.dir, { recursive: true });
    const { status, stdout, stderr } = here.crore('run', 'flow.yaml', '-j', '4');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('report | counts [8,10], longest word downhill');
    expect(here.read('report.txt')).toBe('counts [8,10], longest word downhill\n');
    expect(stdout).toContain('5 of 5 done');
    expect(here.names).toEqual(['flow.yaml', 'report.txt', 'texts']);
  });

  it('site: nothing is built twice', () => {
    const here = place();
    cpSync(join(root, 'examples', 'site'), here.dir, { recursive: true });
    expect(here.crore('run', 'flow.yaml').stdout).toContain('4 of 4 done in');
    expect(here.read('out/about.html')).toContain('<h1>About</h1>\n<p>Nothing is made twice.</p>');
    expect(here.crore('run', 'flow.yaml').stdout).toContain('4 of 4 done, 4 cached');
    here.write('about.txt', 'About\nChanged.\n');
    const why = "map would run: 'about', which it needs, would run";
    expect(docs).toContain(why);
    expect(here.crore('why', 'map', 'flow.yaml').stdout.trim()).toBe(why);
    expect(here.crore('run', 'flow.yaml').stdout).toContain('4 of 4 done, 2 cached');
    expect(here.read('out/about.html')).toContain('<p>Changed.</p>');
  });

  it('primes: typed functions in separate processes', () => {
    const here = place();
    const { status, stdout, stderr } = here.crore('run', join(root, 'examples', 'primes.ts'), '-j', '2');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('shown | 78498 primes');
  });

  it('chain: results by node id', () => {
    const { status, stdout, stderr } = place().crore('run', join(root, 'examples', 'chain.ts'), '--inline');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('shown | the longest: that is the question');
  });

  it('documents every option of crore run', () => {
    const { stdout } = place().crore('run', '--help');
    const known = [...stdout.matchAll(/--([a-z-]+)/g)]
      .map(([, name]) => name!)
      .filter((name) => !['help', 'quiet'].includes(name));
    for (const name of new Set(known))
      expect(docs.includes(`--${name}`) || docs.includes(`-${name[0]} `), name).toBe(true);
  });
});
