import { checkInteger, checkOneOf, checkOptions } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import { WORK_KNOWN, type WorkOptions } from '../options.js';
import type { BatchJob } from './batch-job.js';

/** Options of a worker whose handler takes many jobs at once; `concurrency` is the number of batches at once. */
export interface WorkBatchOptions extends WorkOptions {
  /** The most jobs in a batch; default 100. */
  size?: number;
  /** How long a batch that is not full waits for more jobs after its first one; default 50 ms, at most a minute. */
  wait?: Duration;
  /** `group`: a batch has jobs of one group only; jobs without a group have batches of their own. */
  by?: 'group';
}

/** How a worker forms and runs batches. */
export interface BatchSetup<T> {
  size: number;
  wait: number;
  byGroup: boolean;
  handler: (jobs: BatchJob<T>[]) => unknown;
}

const OWN = ['size', 'wait', 'by'] as const;
const LARGEST = 1_000;
const LONGEST = 60_000;
/** How many jobs a worker can hold. */
const MOST = 100_000;

/** Splits the options of `workBatch` into those of the batches and those of every worker. */
export function resolveBatchOptions(
  options: WorkBatchOptions = {},
): [Omit<BatchSetup<unknown>, 'handler'>, WorkOptions] {
  checkOptions(options, [...WORK_KNOWN, ...OWN], 'workBatch');
  const { size = 100, wait = 50, by, ...work } = options;
  const resolved = {
    size: checkInteger(size, 'size', 1, LARGEST),
    wait: milliseconds(wait, 'wait'),
    byGroup: by !== undefined && checkOneOf(by, 'by', ['group']) === 'group',
  };
  if (resolved.wait > LONGEST)
    throw new CroreError('BAD_OPTION', `wait must be at most ${LONGEST} ms, not ${resolved.wait}`);
  if (typeof work.concurrency === 'number' && resolved.size * work.concurrency > MOST)
    throw new CroreError('BAD_OPTION', `size × concurrency must be at most ${MOST}`);
  return [resolved, work];
}
