// A process that works on empty queues until its parent goes away: node worker.mjs LIBRARY URL QUEUES.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, url, queues] = process.argv.slice(2);
const { open } = await import(pathToFileURL(resolve(library)).href);
const crore = await open(url, { onError: () => {} });
const workers = Array.from({ length: Number(queues) }, (_x, i) => crore.queue(`idle-${i}`).work(async () => {}));
await Promise.all(workers.map((worker) => worker.ready()));
process.on('disconnect', () => process.exit(0));
process.send('ready');
