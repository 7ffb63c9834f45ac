import type { MessageInitShape } from '@bufbuild/protobuf';
import type { WorkResponseSchema } from '../../proto/crore/v1/crore_pb.js';
import type { Job } from '../../proto/crore/v1/job_pb.js';
import { ClaimSize } from '../claims/claim-size.js';

type Response = MessageInitShape<typeof WorkResponseSchema>;

/** How many responses may wait for a slow reader before the server stops reading its requests. */
const MOST = 5_000;
/** Maximum bytes of jobs in one message, so that it stays below what clients accept by default. */
const MOST_BYTES = 2 * 1024 * 1024;

/** Responses waiting to be sent to a worker; everything that has accumulated is sent as one message. */
export class ResponseQueue {
  readonly #claimSize = new ClaimSize(MOST_BYTES);
  #opened: Response['opened'];
  #jobs: Job[] = [];
  #bytes = 0;
  #settled: { token: string; applied: boolean }[] = [];
  #cancelled: string[] = [];
  #heartbeat = false;
  #failure: unknown;
  #over = false;
  #notify = () => {};
  #room = () => {};

  /** `taken` is called whenever something was sent to the reader. */
  constructor(private readonly taken: () => void) {}

  opened(worker: string, lease: NonNullable<Response['opened']>['lease']): void {
    this.#opened = { worker, lease };
    this.#notify();
  }

  /** How many more jobs may be claimed for the reader, besides those already requested. */
  space(asked: number): number {
    return this.#claimSize.room(this.#bytes, asked);
  }

  jobs(jobs: readonly Job[]): void {
    let bytes = 0;
    for (const job of jobs) {
      this.#jobs.push(job);
      bytes += sizeOf(job);
    }
    this.#bytes += bytes;
    this.#claimSize.seen(jobs.length, bytes);
    this.#notify();
  }

  /** Tokens of the jobs not yet sent to the reader. */
  unsent(): string[] {
    return this.#jobs.map(({ token }) => token);
  }

  settled(token: string, applied: boolean): void {
    this.#settled.push({ token, applied });
    this.#notify();
  }

  cancelled(token: string): void {
    this.#cancelled.push(token);
    this.#notify();
  }

  heartbeat(): void {
    this.#heartbeat = true;
    this.#notify();
  }

  /** Ends the stream after the waiting responses, with or without an error. */
  end(failure?: unknown): void {
    this.#failure ??= failure;
    this.#over = true;
    this.#notify();
    this.#room();
  }

  /** Resolves when the reader has caught up. */
  async room(): Promise<void> {
    while (this.#settled.length > MOST && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#room = resolve;
      });
    }
  }

  async *messages(): AsyncGenerator<Response> {
    for (;;) {
      while (!this.#empty) {
        yield this.#take();
        this.#room();
        this.taken();
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#over) return;
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    }
  }

  get #empty(): boolean {
    const waiting = this.#jobs.length + this.#settled.length + this.#cancelled.length;
    return waiting === 0 && !this.#opened && !this.#heartbeat;
  }

  #take(): Response {
    let bytes = 0;
    let n = 0;
    while (n < this.#jobs.length && bytes < MOST_BYTES) bytes += sizeOf(this.#jobs[n++]!);
    const message: Response = {
      opened: this.#opened,
      jobs: this.#jobs.splice(0, n),
      settled: this.#settled,
      cancelled: this.#cancelled,
      heartbeat: this.#heartbeat,
    };
    this.#bytes -= bytes;
    this.#opened = undefined;
    this.#settled = [];
    this.#cancelled = [];
    this.#heartbeat = false;
    return message;
  }
}

function sizeOf({ payload }: Job): number {
  return 200 + (payload?.kind.value?.length ?? 0);
}
