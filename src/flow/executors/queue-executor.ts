import type { Engine } from '../../engine/engine.js';
import { contextOf } from '../../job/trace-context.js';
import { isRecord } from '../input/fields.js';
import type { Executor, NodeOutcome, NodeTask } from './executor.js';
import { resultOf, runJob } from './queue-job.js';

/** Runs nodes as jobs of a queue: the workers of that queue run them, and the job's result becomes the node's. */
export class QueueExecutor implements Executor {
  readonly keepsTime = true;

  constructor(
    private readonly engine: Engine,
    private readonly flow: string,
    /** How often each node failed in earlier runs of this flow: each round uses its own job ids. */
    private readonly rounds: ReadonlyMap<string, number>,
  ) {}

  async run(task: NodeTask): Promise<NodeOutcome> {
    const { work, options } = task.spec;
    if (work.kind !== 'queue') throw new Error(`node '${task.id}' is not a job`);
    const round = this.rounds.get(task.id) ?? 0;
    const id = `${this.flow}/${task.id}${round === 0 ? '' : `~${round}`}`;
    let gone = false;
    task.stop = () => {
      gone = true;
      void this.engine.store.cancel(work.queue, [id]).catch(() => {});
    };
    const job = await runJob(this.engine, work.queue, payloadOf(work.payload, task), {
      id,
      attempts: options.retries + 1,
      backoff: options.backoff,
      priority: options.priority,
      ...(options.timeout > 0 ? { reservation: options.timeout } : {}),
      keep: { for: '7d', count: 1_000_000 },
      headers: {
        ...contextOf(process.env),
        'crore-flow': this.flow,
        'crore-node': task.id.replace(/[^\x20-\x7e]/g, '?'),
      },
    });
    if (job?.state === 'done') return { exit: 0, value: resultOf(job) };
    const error = job === undefined ? 'its record is gone' : job.state === 'dead' ? job.error : `the job was cancelled`;
    return { exit: 1, error: error ?? 'the job is dead', fatal: !gone };
  }

  async close(): Promise<void> {}
}

/** Adds the upstream results and the list item to an object payload, unless it has those keys itself. */
function payloadOf(payload: unknown, { needs, part, item }: NodeTask): unknown {
  if (!isRecord(payload)) return payload;
  return { ...(needs ? { needs } : {}), ...(part === undefined ? {} : { item }), ...payload };
}
