import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Code, ConnectError, type ConnectRouter, type Interceptor } from '@connectrpc/connect';
import type { Job } from '../job/job.js';
import { Crore } from '../proto/crore/v1/crore_pb.js';
import { DeadJobsSchema, type JobSchema, Lakh } from '../proto/lakh/lakh_pb.js';
import type { ServerContext } from './context.js';
import { croreService } from './crore/service.js';
import { WorkStream } from './crore/work-stream.js';
import type { Health } from './health.js';
import { argsOf } from './lakh/consumer.js';
import { deadJobs } from './lakh/dead-jobs.js';
import { executionTimeOf } from './lakh/execution-time.js';
import { Reflection } from './reflection.js';
import { STATUS, statusOf } from './status.js';

/** A default client accepts messages of 4 MB: some room is left for what surrounds the jobs. */
const MOST_DEAD_BYTES = 4 * 1024 * 1024 - 16 * 1024;
const JOB_OVERHEAD = 32;

/** The calls that a library serves: all of crore.v1, health, reflection, and the one unary call of lakh. */
export class Routes {
  readonly #streams = new Set<WorkStream>();

  constructor(
    private readonly context: ServerContext,
    private readonly health: Health,
  ) {}

  get busy(): boolean {
    return this.#streams.size > 0;
  }

  drain(): void {
    for (const stream of this.#streams) stream.drain();
  }

  cut(): void {
    for (const stream of this.#streams) stream.cut();
  }

  readonly register = (router: ConnectRouter): void => {
    const { context } = this;
    router.service(Crore, {
      ...croreService(context),
      work: (requests, { signal, requestHeader }) => {
        const from =
          requestHeader
            .get('user-agent')
            ?.split(/[ /]/)[0]
            ?.replace(/[^\w.-]/g, '') || 'worker';
        const stream = new WorkStream(context, from, (gone) => this.#streams.delete(gone));
        this.#streams.add(stream);
        return stream.serve(requests, signal);
      },
    });
    router.service(Lakh, { getDeadJobs: () => this.#deadJobs() });
    this.health.routes(router);
    new Reflection([Lakh, Crore]).routes(router);
  };

  /** The newest that fit. */
  async #deadJobs() {
    const jobs: MessageInitShape<typeof JobSchema>[] = [];
    let bytes = 0;
    for await (const job of deadJobs(this.context.engine)) {
      const args = argsOf({ job });
      bytes += JOB_OVERHEAD + Buffer.byteLength(job.id) + Buffer.byteLength(job.queue);
      for (const arg of args) bytes += 6 + Buffer.byteLength(arg);
      if (bytes > MOST_DEAD_BYTES) break;
      const { reservation } = job.spec;
      const reservationTime = reservation > 0 ? durationFromMs(reservation) : undefined;
      jobs.push({ id: job.id, name: job.queue, args, reservationTime, executionTime: executionOf(job) });
    }
    return create(DeadJobsSchema, { jobs });
  }
}

function executionOf(job: Job): MessageInitShape<typeof JobSchema>['executionTime'] {
  const time = executionTimeOf(job);
  if (time.kind === 'immediate') return { case: 'immediate', value: {} };
  return { case: time.kind, value: { seconds: BigInt(time.seconds), nanos: time.nanos } };
}

/** Errors of ours become statuses by the table of errors; what is unforeseen is logged and not told. */
export function translating(context: Pick<ServerContext, 'log'>): Interceptor {
  const translate = (error: unknown, method: string): ConnectError => {
    if (error instanceof ConnectError) return error;
    const { status, message, code } = statusOf(error);
    if (status === 'INTERNAL') context.log.error({ err: error, method }, 'a call failed');
    return new ConnectError(message, STATUS[status] as Code, code === undefined ? undefined : { 'crore-code': code });
  };
  return (next) => async (request) => {
    const method = `${request.service.typeName}/${request.method.name}`;
    try {
      const response = await next(request);
      if (!response.stream) return response;
      const translated = (error: unknown) => translate(error, method);
      return { ...response, message: guarded(response.message, request.signal, translated) };
    } catch (error) {
      throw translate(error, method);
    }
  };
}

/** A stream that was cut short by its caller's deadline ends with that, however its source took the news. */
async function* guarded<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  translate: (error: unknown) => unknown,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw translate(error);
  }
  if (signal.aborted && signal.reason instanceof ConnectError) throw signal.reason;
}
