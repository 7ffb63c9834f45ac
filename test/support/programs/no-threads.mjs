// Loaded with --import: every thread of the process fails before its own code runs.
import { isMainThread } from 'node:worker_threads';

if (!isMainThread) throw new Error('no thread can start here');
