import { describe, expect, it } from 'vitest';
import { Captured } from '../../dist/flow/captured.js';
import { place } from './support.js';

describe('what a command prints', () => {
  it('is its own on both streams, however much it is and however it ends', () => {
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

describe('the end of what is captured', () => {
  const captured = (...chunks: string[]) => {
    const all = new Captured('\0mark ');
    for (const chunk of chunks) all.add(Buffer.from(chunk));
    return { exit: all.exit, text: all.text };
  };

  it('is where the mark is, in however many pieces it comes', () => {
    const whole = 'a\nb\0mark 17\n';
    for (let at = 0; at <= whole.length; at++)
      expect(captured(whole.slice(0, at), whole.slice(at))).toEqual({ exit: 17, text: 'a\nb' });
    expect(captured(whole.slice(0, -1))).toEqual({ exit: undefined, text: 'a\nb\0mark 17' });
  });

  it('is there also when something that was left running prints behind it', () => {
    expect(captured('a\0mark 0\nlate')).toEqual({ exit: 0, text: 'a' });
    expect(captured('a\0mark 0\nlate\n')).toEqual({ exit: 0, text: 'a' });
  });
});
