// A worker of the soak. It reads `queue NAME` and `idle` from its standard input, and prints `ready` and `idle` when that is so.
import { createInterface } from 'node:readline';
import { Crore } from '../../../../dist/crore.js';
import { openStore } from '../../../../dist/store/open.js';
import { Journal } from './journal.mjs';
import { insist, kindOf } from './plan.mjs';

const { url, file, steady, options } = JSON.parse(process.argv[2]);
const timeout = 5_000;
const quiet = () => {};
const journal = new Journal(file);
const store = journal.record(await insist(() => openStore(url, { timeout })));
const crore = new Crore(store, { url, timeout, maxPayload: 1_048_576, onError: quiet, random: undefined });
const say = (line) => process.stdout.write(`${line}\n`);
let worker;

async function handle({ payload: n, attempt }) {
  const kind = kindOf(n);
  if (kind === 'poison') {
    // The steady worker shows how memory develops: it leaves such a job to the others.
    if (steady) throw new Error('for another worker');
    process.kill(process.pid, 'SIGKILL');
  }
  if (kind === 'slow') await new Promise((resolve) => setTimeout(resolve, 20));
  journal.ran(n);
  if (kind === 'failing' || (kind === 'retried' && attempt === 1)) throw new Error('as planned');
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, queue] = line.split(' ');
  if (verb === 'queue') {
    worker = crore.queue(queue).work(handle, { ...options, onError: quiet });
    await worker.ready();
    say('ready');
  } else {
    await worker?.close();
    say('idle');
  }
}
// Whoever started it has gone, or has no more work.
await crore.close();
process.exit(0);
