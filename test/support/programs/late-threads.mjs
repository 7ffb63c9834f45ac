// Preloaded: every thread but the main one starts some milliseconds late, as on a machine that is busy with other things.
import { isMainThread } from 'node:worker_threads';

const late = new Int32Array(new SharedArrayBuffer(4));
if (!isMainThread) Atomics.wait(late, 0, 0, Number(process.env.CRORE_TEST_LATE));
