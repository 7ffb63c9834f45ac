// The cost of starting the commands beyond bare Node: all run in turn, so that other load on the machine affects them
// equally. CPU time is less sensitive to that load than wall-clock time. node bench/startup.mjs [rounds]
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { timed } from './process-time.mjs';

const rounds = Number(process.argv[2] ?? 40);
const [w8y, crore] = ['w8y', 'crore'].map((name) => fileURLToPath(new URL(`../bin/${name}`, import.meta.url)));

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

function median(times) {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

/** What a ring with an item is compared with. */
const SPAWN = "require('child_process').spawn('true', { stdio: 'inherit' }).on('exit', (code) => process.exit(code))";

/** Puts one item into the ring; it stays there, whoever runs it. */
async function addItem(port) {
  const socket = createConnection(port, '127.0.0.1');
  await new Promise((resolve, reject) => {
    socket.once('data', resolve).once('error', reject).write('RPUSH full:list item\r\n');
  });
  socket.destroy();
}

const dir = mkdtempSync(join(tmpdir(), 'w8y-startup-'));
const port = await freePort();
const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--dir', dir], { stdio: 'ignore' });
try {
  await answers(port);
  await addItem(port);
  const cases = [
    ['node -e 0', 'node', ['-e', '0']],
    ['w8y --help', w8y, ['--help']],
    ['node, spawning true', 'node', ['-e', SPAWN]],
    ['w8y, empty Redis ring', w8y, ['-u', `redis://localhost:${port}`, '-k', 'empty', 'true']],
    ['w8y, one Redis item', w8y, ['-q', '-u', `redis://localhost:${port}`, '-k', 'full', 'true']],
    ['w8y, empty SQLite ring', w8y, ['-u', `sqlite:${join(dir, 'ring.db')}`, '-k', 'empty', 'true']],
    ['crore --help', crore, ['--help']],
    ['crore push, SQLite', crore, ['push', 'mails', '1', '--store', `sqlite:${join(dir, 'crore.db')}`]],
    ['crore push, Redis', crore, ['push', 'mails', '1', '--store', `redis://localhost:${port}`]],
    ['crore queue ls', crore, ['queue', 'ls', '--store', `sqlite:${join(dir, 'crore.db')}`]],
    ['crore run, one node', crore, ['run', 'one.json', '-q']],
  ];
  writeFileSync(join(dir, 'one.json'), '{"nodes":{"a":{"run":"true"}}}');
  const times = cases.map(() => []);
  for (let round = -2; round < rounds; round++) {
    for (const [i, [, command, args]] of cases.entries()) {
      const took = timed(command, args, dir);
      if (round >= 0) times[i].push(took);
    }
  }
  const of = (i, key, pick) => pick(times[i].map((took) => took[key]));
  const least = (values) => Math.min(...values);
  for (const [i, [name]] of cases.entries()) {
    const ratio = (key, pick) => `${(of(i, key, pick) / of(0, key, pick)).toFixed(2)}x`;
    const clock = `${of(i, 'ms', median).toFixed(1).padStart(6)} ms ${ratio('ms', median)} (least ${ratio('ms', least)})`;
    const cpu = `${of(i, 'cpu', median).toFixed(1).padStart(6)} ms of CPU ${ratio('cpu', median)} (least ${ratio('cpu', least)})`;
    console.log(`${name.padEnd(24)} ${clock}  ${cpu}`);
  }
} finally {
  redis.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}
