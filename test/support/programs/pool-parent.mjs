// A worker with its handler in processes. It prints `ready`.
import { open } from '../../../dist/index.js';

const { url, queue } = JSON.parse(process.argv[2]);
const crore = await open(url, { onError: () => {} });
const worker = crore.queue(queue).work(new URL('./handler.mjs', import.meta.url), { processes: 2 });
await worker.ready();
process.stdout.write('ready\n');
