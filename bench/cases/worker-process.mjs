// The worker of two-processes.mjs: handles the given number of jobs, reports when the last one started, waits to be
// ended. The monotonic clock is the machine's, so both processes read the same time.
import { load } from '../subjects/index.mjs';
import { count } from './drain.mjs';

const CONCURRENCY = 100;

process.once('disconnect', () => process.exit(0));
process.once('message', async ({ entry, place, jobs }) => {
  try {
    const { open } = await load(entry);
    const subject = await open(place, entry.options ?? {});
    const tally = count(jobs);
    await subject.work(CONCURRENCY, tally.onJob);
    process.send({ ready: true });
    await tally.handled;
    process.send({ at: String(process.hrtime.bigint()) });
  } catch (error) {
    process.send({ error: error.message });
  }
});
