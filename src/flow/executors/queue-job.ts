import type { Engine } from '../../engine/engine.js';
import { type AddOptions, resolveJob } from '../../engine/input/options.js';
import { decodeValue, encodeValue } from '../../engine/input/payload.js';
import type { Job } from '../../job/job.js';

const PAYLOAD_LIMIT = 4 * 1_048_576;

/** Adds a job, or finds the one that a killed runner added under the same id, and waits until it ends. */
export async function runJob(
  engine: Engine,
  queue: string,
  payload: unknown,
  options: AddOptions & { id: string },
): Promise<Job | undefined> {
  const body = encodeValue(payload, `payload for queue '${queue}'`, PAYLOAD_LIMIT);
  await engine.add(queue, resolveJob(queue, body, options, engine.store.now()), {});
  return engine.completions.wait(queue, options.id, undefined);
}

export function resultOf(job: Job): unknown {
  return job.result === undefined ? undefined : (decodeValue(job.result) ?? undefined);
}
