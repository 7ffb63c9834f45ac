// What starting w8y costs beyond bare Node: both run in turn, so that whatever else the machine does hits both alike.
// node bench/startup.mjs [rounds]
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const rounds = Number(process.argv[2] ?? 40);
const w8y = fileURLToPath(new URL('../bin/w8y', import.meta.url));

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function answers(port) {
  for (let tries = 0; tries < 100; tries++) {
    const open = await new Promise((resolve) => {
      const socket = createConnection(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('redis-server does not answer');
}

function time(command, args) {
  const begin = process.hrtime.bigint();
  const { status, stderr } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: exit ${status}: ${stderr}`);
  return Number(process.hrtime.bigint() - begin) / 1e6;
}

function median(times) {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

const dir = mkdtempSync(join(tmpdir(), 'w8y-startup-'));
const port = await freePort();
const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--dir', dir], { stdio: 'ignore' });
try {
  await answers(port);
  const cases = [
    ['node -e 0', 'node', ['-e', '0']],
    ['w8y --help', w8y, ['--help']],
    ['w8y, empty Redis ring', w8y, ['-u', `redis://localhost:${port}`, '-k', 'empty', 'true']],
    ['w8y, empty SQLite ring', w8y, ['-u', `sqlite:${join(dir, 'ring.db')}`, '-k', 'empty', 'true']],
  ];
  const times = cases.map(() => []);
  for (let round = -2; round < rounds; round++) {
    for (const [i, [, command, args]] of cases.entries()) {
      const ms = time(command, args);
      if (round >= 0) times[i].push(ms);
    }
  }
  const [bare] = times;
  for (const [i, [name]] of cases.entries()) {
    const [mid, low] = [median(times[i]), Math.min(...times[i])];
    const ratios = `${(mid / median(bare)).toFixed(2)}x by median, ${(low / Math.min(...bare)).toFixed(2)}x by minimum`;
    console.log(`${name.padEnd(24)} ${mid.toFixed(1).padStart(6)} ms  ${ratios}`);
  }
} finally {
  redis.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}
