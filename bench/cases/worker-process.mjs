// The worker of two-processes.mjs: after every so many jobs it reports when the last of them started, until it is
// killed. The monotonic clock is system-wide, so both processes read the same time.
import { load } from '../subjects/index.mjs';

process.once('disconnect', () => process.exit(0));
process.once('message', async ({ entry, place, jobs, concurrency, options }) => {
  try {
    const { open } = await load(entry);
    const subject = await open(place, { ...entry.options, ...options });
    let handled = 0;
    await subject.work(concurrency, () => {
      if (++handled % jobs === 0) process.send({ at: String(process.hrtime.bigint()) });
    });
    process.send({ ready: true });
  } catch (error) {
    process.send({ error: error.message });
  }
});
