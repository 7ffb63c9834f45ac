// Tasks that are never finished: connections that must be open exactly once, whichever process holds them.
//
//   node examples/persistent-tasks.mjs [sqlite:FILE | redis://…]
//
// Two worker processes share four connections. One of them is killed, without a chance to say goodbye; the other one has
// all four a moment later. The store is a file that goes away with the example, unless you name another one.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worqr } from 'crore/worqr';

const CONNECTIONS = ['mars', 'venus', 'pluto', 'ceres'];
const QUEUE = 'connections';
const self = fileURLToPath(import.meta.url);

/** A worker: holds up to `most` connections until it dies. */
async function work(url, name, most) {
  const worqr = new Worqr(url, { workerId: name });
  let open = 0;

  async function openMore() {
    while (open < most) {
      open += 1;
      const connection = await worqr.dequeue(QUEUE);
      if (!connection) {
        open -= 1;
        return;
      }
      // Here a real program would connect. It never calls finishProcess: the task lives as long as the connection does.
      process.send(connection.task);
    }
  }

  worqr.on('error', (error) => {
    // The worker was taken for dead and others have its connections now: close them all and start again, or just leave.
    process.stderr.write(`${name}: ${error.message}\n`);
    process.exit(1);
  });
  worqr.on(QUEUE, (type) => {
    if (type === 'work') openMore().catch((error) => worqr.emit('error', error));
  });
  await worqr.startWorker();
  await worqr.startWork(QUEUE);
}

/** Starts a worker process; `has` fills as it opens connections. */
function start(url, name, most) {
  const child = fork(self, [url, name, String(most)]);
  const worker = { name, child, has: new Set() };
  child.on('message', (connection) => {
    worker.has.add(connection);
    console.log(`${name} opens ${connection}`);
  });
  return worker;
}

async function until(check) {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function main(url) {
  const worqr = new Worqr(url);
  // Unique: starting this program twice must not open a connection twice.
  await worqr.enqueue(QUEUE, CONNECTIONS, true);
  const ada = start(url, 'ada', 2);
  await until(() => ada.has.size === 2);
  const bob = start(url, 'bob', 4);
  await until(() => bob.has.size === 2);

  console.log('ada is killed');
  const gone = once(ada.child, 'exit');
  ada.child.kill('SIGKILL');
  await gone;
  await until(() => bob.has.size === CONNECTIONS.length);
  console.log(`bob has ${[...bob.has].sort().join(', ')}`);

  const left = once(bob.child, 'exit');
  bob.child.kill('SIGKILL');
  await left;
  await worqr.failWorker('bob'); // nobody is left who would notice
  await worqr.deleteQueue(QUEUE);
  await worqr.close();
}

const [url, name, most] = process.argv.slice(2);
if (name) {
  await work(url, name, Number(most));
} else {
  const dir = mkdtempSync(join(tmpdir(), 'crore-example-'));
  await main(url ?? `sqlite:${join(dir, 'example.db')}`);
  rmSync(dir, { recursive: true });
}
