// A Redis server only for the benchmark: loopback, a free port, nothing written to disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect } from '../subjects/root.mjs';
import { within } from '../wait.mjs';

const HOST = '127.0.0.1';
const START_MS = 10_000;
const STOP_MS = 5_000;

/** The server's address, a function that stops it and one that kills it immediately. */
export async function startRedis(dir) {
  const port = await freePort();
  const flags = ['--port', port, '--bind', HOST, '--save', '', '--appendonly', 'no', '--dir', dir].map(String);
  const child = spawn('redis-server', flags, { stdio: 'ignore' });
  const gone = once(child, 'exit');
  const failed = gone.then(() => {
    throw new Error('redis-server ended before it answered');
  });
  await within(START_MS, 'starting redis-server', Promise.race([answers(port), failed]));
  failed.catch(() => {});
  const address = { host: HOST, port, url: `redis://${HOST}:${port}` };
  return { address, pid: child.pid, stop: () => stop(child, gone), kill: () => child.kill('SIGKILL') };
}

async function stop(child, gone) {
  child.kill('SIGTERM');
  try {
    await within(STOP_MS, 'stopping redis-server', gone);
  } catch {
    child.kill('SIGKILL');
  }
}

async function answers(port) {
  const client = connect({ host: HOST, port });
  client.on('error', () => {});
  await client.ping();
  client.disconnect();
}

async function freePort() {
  const probe = createServer().listen(0, HOST);
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
