import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const bin = fileURLToPath(new URL('../../bin/crore', import.meta.url));
const run = (...args: string[]) => spawnSync(bin, args, { encoding: 'utf8', timeout: 60_000 });

describe('the crore command', () => {
  it('prints its help', () => {
    const { stdout, status } = run('--help');
    expect(status).toBe(0);
    for (const word of ['demo', 'ring', 'Examples:']) expect(stdout).toContain(word);
  });

  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(run('--version').stdout).toBe(`${version}\n`);
  });

  it.each([
    [['frobnicate'], "'frobnicate'"],
    [['demo', '--fro', '5'], "'--fro'"],
    [['demo', '--for', 'x'], '--for'],
  ])('refuses %j', (args, word) => {
    const { stderr, status } = run(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(word);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('runs the demo: a worker is killed and every job is accounted for', () => {
    const { stdout, stderr, status } = run('demo', '--for', '8');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('killed -9');
    const [, added, accounted] = /(\d+) jobs added, (\d+) accounted for/.exec(stdout)!;
    expect(Number(accounted)).toBe(Number(added));
    expect(Number(/done (\d+)/.exec(stdout.slice(stdout.indexOf('accounted')))![1])).toBeGreaterThan(20);
  });

  it('includes the ring', () => {
    expect(run('ring', '--help').stdout).toContain('w8y');
  });
});
