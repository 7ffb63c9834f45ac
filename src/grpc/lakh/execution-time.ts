import type { Job } from '../../job/job.js';
import type { WireTime } from './reader.js';

/** The requested execution time is kept in a header, so that the worker that gets the job can see it. */
const HEADER = 'lakh-execution-time';

export type ExecutionTime = { kind: 'immediate' } | ({ kind: 'delayed' | 'scheduled' } & WireTime);

const IMMEDIATE: ExecutionTime = Object.freeze({ kind: 'immediate' });

/** Headers for a job that does not run at once. */
export function executionHeaders(kind: 'delayed' | 'scheduled', { seconds, nanos }: WireTime): Record<string, string> {
  return { [HEADER]: `${kind} ${seconds} ${nanos}` };
}

export function executionTimeOf(job: Pick<Job, 'spec'> | undefined): ExecutionTime {
  const text = job?.spec.headers?.[HEADER];
  const match = text === undefined ? null : /^(delayed|scheduled) (-?\d+) (-?\d+)$/.exec(text);
  if (!match) return IMMEDIATE;
  return { kind: match[1] as 'delayed' | 'scheduled', seconds: Number(match[2]), nanos: Number(match[3]) };
}
