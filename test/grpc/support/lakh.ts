import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { until } from '../../support/wait.js';

/** An independent client of the lakh protocol: grpc-js and a proto file written from the protocol's facts. */

const file = fileURLToPath(new URL('./lakh.proto', import.meta.url));
const loaded = grpc.loadPackageDefinition(
  loadSync(file, { keepCase: true, longs: Number, enums: String, oneofs: true, defaults: true }),
);
const LakhClient = (loaded.lakh as grpc.GrpcObject).Lakh as grpc.ServiceClientConstructor;

/** Calls of a client made from a proto file at run time are untyped. */
type Method = (...args: unknown[]) => unknown;

export interface Job {
  id: string;
  name: string;
  args: string[];
  reservation_time?: { seconds: number; nanos: number } | null;
}
export type JobInit = Partial<Job> & {
  delayed?: object;
  scheduled?: object;
  immediate?: object;
};

export interface Failed extends Error {
  code: number;
  details: string;
}

export const seconds = (value: number) => ({
  seconds: Math.floor(value),
  nanos: Math.round((value - Math.floor(value)) * 1e9),
});

export class Lakh {
  readonly client: grpc.Client & Record<string, Method>;
  readonly workers: LakhWorker[] = [];

  constructor(
    address: string,
    credentials: grpc.ChannelCredentials = grpc.credentials.createInsecure(),
    options: grpc.ClientOptions = {},
    private readonly token?: string,
  ) {
    this.client = new LakhClient(address, credentials, options) as never;
  }

  metadata(names?: string): grpc.Metadata {
    const metadata = new grpc.Metadata();
    if (names !== undefined) metadata.set('job_names', names);
    if (this.token !== undefined) metadata.set('authorization', `Bearer ${this.token}`);
    return metadata;
  }

  /** Adds jobs; resolves when the server has replied. */
  work(names: string | undefined, jobs: Iterable<JobInit>): Promise<object> {
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, value: object) => (error ? reject(error) : resolve(value));
      const stream = this.client.Work!.call(
        this.client,
        this.metadata(names),
        done,
      ) as grpc.ClientWritableStream<JobInit>;
      stream.on('error', reject);
      for (const job of jobs) stream.write(job);
      stream.end();
    });
  }

  join(names: string | undefined): LakhWorker {
    const stream = this.client.Join!.call(this.client, this.metadata(names)) as grpc.ClientDuplexStream<object, Job>;
    const worker = new LakhWorker(stream);
    this.workers.push(worker);
    return worker;
  }

  dead(): Promise<{ jobs: Job[] }> {
    return new Promise((resolve, reject) => {
      this.client.GetDeadJobs!.call(this.client, {}, this.metadata(), (error: Error | null, value: { jobs: Job[] }) =>
        error ? reject(error) : resolve(value),
      );
    });
  }

  close(): void {
    for (const worker of this.workers) worker.stream.cancel();
    this.client.close();
  }
}

export class LakhWorker {
  readonly jobs: Job[] = [];
  status: grpc.StatusObject | undefined;
  opened = false;
  /** Reports each job as it arrives. */
  answer: ((job: Job) => 'SUCCEEDED' | 'FAILED' | undefined) | undefined;

  constructor(readonly stream: grpc.ClientDuplexStream<object, Job>) {
    stream.on('data', (job: Job) => {
      this.jobs.push(job);
      const status = this.answer?.(job);
      if (status) this.report(job, status);
    });
    stream.on('metadata', () => {
      this.opened = true;
    });
    stream.on('error', () => {});
    stream.on('status', (status) => {
      this.status = status;
    });
  }

  report(job: Pick<Job, 'id' | 'name'>, status: 'SUCCEEDED' | 'FAILED'): void {
    this.stream.write({ job_id: job.id, job_name: job.name, status });
  }

  got(count: number): Promise<unknown> {
    return until(`${count} jobs, has ${this.jobs.length}`, () => this.jobs.length >= count, { within: 30_000 });
  }

  joined(): Promise<unknown> {
    return until('the worker to be accepted', () => this.opened || this.status);
  }

  ended(): Promise<grpc.StatusObject | undefined> {
    return until('the stream to end', () => this.status, { within: 30_000 });
  }
}

export async function refused(promise: Promise<unknown>): Promise<Failed> {
  return promise.then(
    () => {
      throw new Error('it was not refused');
    },
    (error) => error as Failed,
  );
}
