import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Line } from './support/crore.js';

const PARENT = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;

describe('the context of a trace', () => {
  let dir: string;
  let line: Line;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-trace-'));
    line = new Line(`sqlite:${join(dir, 'jobs.db')}`);
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it('goes from crore push through the job to the executable of crore work', async () => {
    await line.run(['push', 'q', 'x'], { env: { TRACEPARENT: PARENT, TRACESTATE: 'a=b' } });
    await line.run(['push', 'q', 'y'], { env: { TRACEPARENT: 'nonsense', TRACESTATE: '' } });
    const args = ['work', 'q', '--drain', '-q', '--', 'sh', '-c', 'echo "$1 $TRACEPARENT $TRACESTATE"', 'sh', '{}'];
    const { out } = await line.run(args, { env: { TRACEPARENT: '', TRACESTATE: '' } });
    expect(out).toBe(`x ${PARENT} a=b\ny  \n`);
  });

  it('is the same for all nodes of a flow', async () => {
    const flow = 'nodes:\n  a: { run: echo trace $TRACEPARENT }\n  b: { run: echo trace $TRACEPARENT, needs: [a] }\n';
    writeFileSync(join(dir, 'flow.yaml'), flow);
    const given = await line.run(['run', 'flow.yaml'], { cwd: dir, env: { TRACEPARENT: PARENT } });
    expect(given.out.match(/trace \S+/g)).toEqual([`trace ${PARENT}`, `trace ${PARENT}`]);
    const { out } = await line.run(['run', 'flow.yaml'], { cwd: dir, env: { TRACEPARENT: '' } });
    const traces = out.match(/trace 00-[0-9a-f]{32}-[0-9a-f]{16}-01/g)!;
    expect(traces).toHaveLength(2);
    expect(new Set(traces).size).toBe(1);
  });
});
