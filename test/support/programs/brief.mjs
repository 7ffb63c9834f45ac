// Opens a store, starts a worker and closes it again, so many times: whatever the heartbeat thread is about, it must end well.
import { open } from '../../../dist/index.js';

const { url, times } = JSON.parse(process.argv[2]);
for (let i = 0; i < times; i++) {
  const crore = await open(url, { onError: () => {} });
  await crore
    .queue(`brief-${i % 3}`)
    .work(() => {})
    .ready();
  await new Promise((resolve) => setTimeout(resolve, (i * 37) % times)); // another moment of the thread's life each time
  await crore.close();
}
process.stdout.write('ended\n');
