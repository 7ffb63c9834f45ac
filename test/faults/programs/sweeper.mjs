// Sweeps a queue from several connections at once, from the moment it is told to, and writes its history.
import { once } from 'node:events';
import { Engine } from '../../../dist/engine/engine.js';
import { sweepQueue } from '../../../dist/engine/sweeper.js';
import { openStore } from '../../../dist/store/open.js';
import { Recorder, recorded } from './recorder.mjs';

const { dir, name, url, queue, connections, lease } = JSON.parse(process.argv[2]);
const recorder = new Recorder(dir, name);
const quiet = { random: Math.random, onError: () => {}, logger: undefined };
const engines = await Promise.all(
  Array.from({ length: connections }, async () => {
    const store = recorded(await openStore(url, { timeout: 5_000 }), recorder);
    return new Engine(store, quiet);
  }),
);
process.stdout.write('ready\n');
await once(process.stdin, 'data');
for (;;) {
  await Promise.all(
    engines.map((engine) => sweepQueue(engine, queue, { lease, sweep: 0, maxCrashes: 1_000 }).catch(() => {})),
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
}
