import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const bin = fileURLToPath(new URL('../../bin/crore', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'crore-start-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Reports which of Node's modules for output were loaded, on a descriptor of its own. */
const REPORT = `process.on('exit', () => {
  const loaded = process.moduleLoadList.filter((name) => /sync_write_stream/.test(name));
  require('fs').writeSync(3, JSON.stringify({ loaded, exitCode: process.exitCode }));
});`;

function run(flow: object, ...options: string[]) {
  writeFileSync(join(dir, 'report.cjs'), REPORT);
  writeFileSync(join(dir, 'flow.json'), JSON.stringify(flow));
  const output = openSync(join(dir, 'output'), 'w');
  const args = ['--require', join(dir, 'report.cjs'), bin, 'run', 'flow.json', ...options];
  const env = { ...process.env, XDG_STATE_HOME: dir };
  const child = spawnSync(process.execPath, args, { cwd: dir, env, stdio: ['ignore', output, output, 'pipe'] });
  closeSync(output);
  return { status: child.status, ...(JSON.parse(String(child.output[3])) as { loaded: string[]; exitCode: number }) };
}

describe('crore run --quiet', () => {
  it('opens no stream when it has nothing to say, and ends with its exit code', () => {
    expect(run({ nodes: { a: { run: 'echo a' }, b: { run: 'true', needs: ['a'] } } }, '-q')).toEqual({
      status: 0,
      loaded: [],
      exitCode: 0,
    });
  });

  it('opens one for a failure, and ends when it is written', () => {
    const { status, loaded } = run({ nodes: { a: { run: 'exit 3' } } }, '-q');
    expect({ status, loaded: loaded.length }).toEqual({ status: 100, loaded: 1 });
  });
});
