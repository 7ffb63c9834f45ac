import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { humanLine } from '../../dist/cli/server-commands/log.js';
import { until } from '../support/wait.js';
import { Line } from './support/crore.js';

describe('the log of crore serve', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-log-'));
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  it.each(['json', 'text'])('is written as %s', async (format) => {
    const line = new Line(`sqlite:${join(dir, `${format}.db`)}`);
    const args = [
      'serve',
      '--addr',
      'localhost:0',
      '--http',
      'localhost:0',
      '--store',
      line.url,
      '--log-format',
      format,
    ];
    const server = line.start(args);
    await until('the server listens', () => server.written.out.includes('HTTP/JSON'));
    server.signal('SIGTERM');
    const { err } = await server.ended;
    const lines = err.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(1);
    for (const one of lines) {
      if (format === 'json') expect(JSON.parse(one)).toHaveProperty('level');
      else expect(one).toMatch(/^\d\d:\d\d:\d\d info {2}\S/);
    }
  });

  it('shows people the message, the error and the fields, and hides control characters', () => {
    const line = {
      level: 35,
      time: 0,
      pid: 1,
      hostname: 'h',
      msg: 'job failed',
      err: { message: 'boom\u001b[2J' },
      queue: 'q',
    };
    expect(humanLine(JSON.stringify(line))).toMatch(/^\d\d:\d\d:\d\d job {3}job failed {2}boom\S*\[2J {2}queue=q\n$/);
    expect(humanLine(JSON.stringify(line))).not.toContain('\u001b');
  });
});
