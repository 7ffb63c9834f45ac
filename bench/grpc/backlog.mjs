// A backlog of a million jobs: how soon the first worker gets one, and how much memory the server uses meanwhile. `node
// bench/grpc/backlog.mjs [JOBS]`
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '../../dist/index.js';
import { call, count, dial, reportOf } from './wire.mjs';

const JOBS = Number(process.argv[2] ?? 1_000_000);
const DRAIN = Math.min(JOBS, 100_000);
const dir = mkdtempSync(join(tmpdir(), 'crore-backlog-'));
const url = `sqlite:${join(dir, 'crore.db')}`;
const say = (text) => process.stdout.write(`${text}\n`);

async function fill() {
  const crore = await open(url);
  const queue = crore.queue('bench');
  for (let i = 0; i < JOBS; i += 10_000) {
    await queue.addMany(
      Array.from({ length: Math.min(10_000, JOBS - i) }, () => ({
        payload: ['user@example.org', '4711'],
        reservation: '10m',
      })),
    );
  }
  await crore.close();
}

const child = fork(fileURLToPath(new URL('./subject.mjs', import.meta.url)), ['store', url]);
try {
  const [{ port }] = await once(child, 'message');
  const megabytes = async () => {
    child.send({});
    return Math.round((await once(child, 'message'))[0].rss / 1_048_576);
  };
  await fill();
  say(`server with ${JOBS} jobs waiting: ${await megabytes()} MB`);
  const session = dial(port);
  const startedAt = performance.now();
  let firstAt = 0;
  const { stream } = call(session, '/lakh.Lakh/Join', 'bench');
  let reports = [];
  const state = count(stream, (buffer, start) => {
    firstAt ||= performance.now();
    if (reports.length === 0) {
      setImmediate(() => {
        stream.write(Buffer.concat(reports));
        reports = [];
      });
    }
    reports.push(reportOf(buffer, start, 'bench'));
  });
  const seen = [];
  while (state.seen < DRAIN) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    seen.push(await megabytes());
  }
  say(`first job after ${(firstAt - startedAt).toFixed(0)} ms`);
  say(`memory while ${DRAIN} of them were worked: ${Math.min(...seen)} to ${Math.max(...seen)} MB`);
  session.destroy();
} finally {
  child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}
