// Repeatedly opens a store, starts a worker and closes it: the heartbeat thread must stop cleanly at any point.
import { open } from '../../../dist/index.js';

const { url, times } = JSON.parse(process.argv[2]);
for (let i = 0; i < times; i++) {
  const crore = await open(url, { onError: () => {} });
  await crore
    .queue(`brief-${i % 3}`)
    .work(() => {})
    .ready();
  await new Promise((resolve) => setTimeout(resolve, (i * 37) % times)); // a different moment each time
  await crore.close();
}
process.stdout.write('ended\n');
