import { chmodSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CapturedOutput } from '../../dist/process/captured-output.js';
import { place } from './support.js';

describe('the output of a command', () => {
  it('is attributed to its node on both streams, whatever its size and exit code', () => {
    const here = place();
    const count = 60;
    const nodes = Object.fromEntries(
      Array.from({ length: count }, (_, i) => {
        const many = i % 10 === 3 ? `; head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2` : '';
        return [
          `n${i}`,
          { run: `echo out ${i}; echo err ${i} >&2${many}; echo last ${i} >&2; exit ${i % 7 === 5 ? 3 : 0}` },
        ];
      }),
    );
    here.write('f.json', { nodes });
    const { status, stdout } = here.crore('run', 'f.json', '-j', '3', '-k');
    const told = [...stdout.matchAll(/^n(\d+) \| (out|last) (\d+)$/gm)];
    expect(told.filter(([, node, , by]) => node !== by)).toEqual([]);
    const full = Array.from({ length: count }, (_, i) => [`out ${i}`, `last ${i}`]).flat();
    expect(told.map(([, , word, by]) => `${word} ${by}`).sort()).toEqual(full.sort());
    expect(stdout.match(/^failed {2}n\d+ .*: last \d+$/gm)).toHaveLength(8);
    expect(status).toBe(100);
  });
});

describe('a command', () => {
  it('does not affect later commands, even if it is a shell builtin or keyword', () => {
    const here = place();
    const words = [
      'cd /',
      'exit 3',
      'exec true',
      'umask 077',
      'set -e',
      'set -- a',
      'trap',
      'if',
      'unset PATH',
      'export X=1',
    ];
    const more = [
      'X=1',
      'readonly CRORE_NODE',
      'alias true=false',
      'chdir /',
      '.',
      ':',
      'read x',
      'wait',
      'hash',
      'return 4',
    ];
    const after = 'echo "$PWD $(umask) $# $X. $CRORE_NODE"; true';
    const nodes: Record<string, unknown> = {};
    let last: string[] = [];
    for (const [i, word] of [...words, ...more].entries()) {
      nodes[`w${i}`] = { run: word, needs: Object.fromEntries(last.map((need) => [need, 'finished'])) };
      nodes[`a${i}`] = { run: after, needs: { [`w${i}`]: 'finished' } };
      last = [`a${i}`];
    }
    here.write('f.json', { nodes });
    const { stdout } = here.crore('run', 'f.json', '-j', '1', '-k', '--json');
    const ends = new Map(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { id: string; exit: number; value?: unknown })
        .map((end) => [end.id, end]),
    );
    const mask = process.umask().toString(8).padStart(4, '0');
    for (const i of [...words, ...more].keys())
      expect(ends.get(`a${i}`)?.value).toBe(`${realpathSync(here.dir)} ${mask} 0 . a${i}`);
    expect([ends.get('w1')?.exit, ends.get('w19')?.exit]).toEqual([3, 4]);
  });

  it('in its simplest form gets its variables, its own stdin and its exit code', () => {
    const here = place();
    const print = here.write('print.sh', '#!/bin/sh\necho "$CRORE_NODE $CRORE_RESULT_a $# $2 $(cat)"; exit $3\n');
    chmodSync(print, 0o755);
    const nodes = {
      a: { run: 'echo 5' },
      plain: { run: './print.sh x  --y=1 0 ', needs: ['a'] },
      lines: { run: './print.sh x --y=2 0\n', needs: ['a'] },
      list: { run: ['./print.sh', "it's", '$y\n', '0'], needs: ['a'] },
      place: { run: '../print.sh x y 0', cwd: 'sub', needs: ['a'] },
      bad: { run: './print.sh x y 7', needs: ['a'] },
      missing: { run: './missing.sh', needs: ['a'] },
    };
    mkdirSync(join(here.dir, 'sub'));
    here.write('f.json', { nodes });
    const { stdout } = here.crore('run', 'f.json', '-j', '1', '-k');
    for (const line of [
      'plain | plain 5 3 --y=1 ',
      'lines | lines 5 3 --y=2 ',
      'list | list 5 3 $y',
      'place | place 5 3 y ',
    ])
      expect(stdout).toContain(`\n${line}\n`);
    expect(stdout).toMatch(/^failed {2}bad .*: exit 7$/m);
    expect(stdout).toMatch(/^failed {2}missing .*: .*missing\.sh.*$/m);
  });

  it('is looked up in PATH each time: a node may install a program that shadows another', () => {
    const here = place();
    for (const dir of ['one', 'two']) mkdirSync(join(here.dir, dir));
    chmodSync(here.write('two/tool', '#!/bin/sh\necho two\n'), 0o755);
    const nodes = {
      before: { run: 'tool' },
      install: { run: 'sed s/two/one/ two/tool > one/tool; chmod 755 one/tool', needs: ['before'] },
      after: { run: 'tool', needs: ['install'] },
    };
    here.write('f.json', { nodes, env: { PATH: `${here.dir}/one:${here.dir}/two:${process.env.PATH}` } });
    const { stdout } = here.crore('run', 'f.json', '-j', '1');
    expect(stdout.match(/^(before|after) \| .*$/gm)).toEqual(['before | two', 'after | one']);
  });
});

describe('the end marker of captured output', () => {
  const captured = (...chunks: string[]) => {
    const all = new CapturedOutput('\0mark ');
    for (const chunk of chunks) all.add(Buffer.from(chunk));
    return { exit: all.exit, text: all.text };
  };

  it('is found however the output is split into chunks', () => {
    const whole = 'a\nb\0mark 17\n';
    for (let at = 0; at <= whole.length; at++)
      expect(captured(whole.slice(0, at), whole.slice(at))).toEqual({ exit: 17, text: 'a\nb' });
    expect(captured(whole.slice(0, -1))).toEqual({ exit: undefined, text: 'a\nb\0mark 17' });
  });

  it('is found even if a background process prints after it', () => {
    expect(captured('a\0mark 0\nlate')).toEqual({ exit: 0, text: 'a' });
    expect(captured('a\0mark 0\nlate\n')).toEqual({ exit: 0, text: 'a' });
  });
});
