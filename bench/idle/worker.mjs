// A process that works on empty queues until its parent goes away: node worker.mjs LIBRARY URL QUEUES FIRST.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, url, queues, first] = process.argv.slice(2);
const { open } = await import(pathToFileURL(resolve(library)).href);
const crore = await open(url, { onError: () => {} });
const names = Array.from({ length: Number(queues) }, (_x, i) => `idle-${Number(first) + i}`);
const workers = names.map((name) => crore.queue(name).work(async () => {}));
await Promise.all(workers.map((worker) => worker.ready()));
process.on('disconnect', () => process.exit(0));
process.send('ready');
