// A relay in its own process, from the outbox in a file or in a schema on PostgreSQL. It prints `ready` once it runs.
import { open } from '../../../dist/index.js';
import { relay } from '../../../dist/outbox/index.js';
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';

const { file, outbox, url, batch } = JSON.parse(process.argv[2]);
const crore = await open(url, { onError: () => {}, timeout: 5_000 });
await relay(outbox ?? openDatabase(file), crore, { batch, every: '100ms', onError: () => {} });
process.stdout.write('ready\n');
