import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type WorkRequest, WorkRequestSchema, WorkResponseSchema } from '../../proto/crore/v1/crore_pb.js';
import type { ServerContext } from '../context.js';
import type { Call } from '../http2/call.js';
import { FrameReader, frame } from '../http2/frames.js';
import { CallError, statusOf } from '../status.js';
import type { WorkStream } from './work-stream.js';

/** The requests of a call, in order; the server reads no further while some are waiting. */
class Requests implements AsyncIterable<WorkRequest> {
  readonly #ready: WorkRequest[] = [];
  #failure: unknown;
  #over = false;
  #notify = () => {};

  constructor(private readonly call: Call) {}

  push(request: WorkRequest): void {
    this.#ready.push(request);
  }

  /** A chunk was read. */
  rest(): void {
    if (this.#ready.length === 0) return;
    this.call.pause();
    this.#notify();
  }

  end(failure?: unknown): void {
    this.#failure ??= failure;
    this.#over = true;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WorkRequest> {
    for (;;) {
      while (this.#ready.length > 0) yield* this.#ready.splice(0);
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#over) return;
      this.call.resume();
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    }
  }
}

/**
 * Serves a worker's stream with our own framing. The library's layers of iterators cost more than all the rest of a stream in
 * memory and time, and a server may have ten thousand of them.
 */
export class WorkCall {
  readonly #requests: Requests;
  readonly #abort = new AbortController();
  #failure: CallError | undefined;
  #flushed = () => {};

  constructor(
    private readonly context: ServerContext,
    private readonly call: Call,
    private readonly stream: WorkStream,
    limit: number,
  ) {
    this.#requests = new Requests(call);
    const reader = new FrameReader({ limit, budget: call.budget }, (buffer, start, end) =>
      this.#requests.push(decoded(buffer.subarray(start, end))),
    );
    call.open();
    call.listen((chunk) => this.#read(reader, chunk));
    call.stream.once('end', () => {
      const cut = new CallError('INVALID_ARGUMENT', 'the stream ended in the middle of a message');
      this.#requests.end(reader.partial ? cut : undefined);
    });
    call.stream.once('close', () => {
      reader.close();
      this.#stop();
    });
    call.onDeadline(() => this.#stop(new CallError('DEADLINE_EXCEEDED', 'the deadline has passed')));
    void this.#respond();
  }

  #read(reader: FrameReader, chunk: Buffer): void {
    try {
      reader.read(chunk);
    } catch (error) {
      this.#requests.end(error);
    }
    this.#requests.rest();
  }

  #stop(failure?: CallError): void {
    this.#failure ??= failure;
    this.#abort.abort();
    this.#requests.end();
    this.#flushed();
  }

  async #respond(): Promise<void> {
    try {
      for await (const response of this.stream.serve(this.#requests, this.#abort.signal)) {
        if (this.call.ended || this.#abort.signal.aborted) break;
        await this.#send(response);
      }
      if (this.#failure) throw this.#failure;
      this.call.end('OK');
    } catch (error) {
      const { status, message, code } = statusOf(error);
      if (status === 'INTERNAL') this.context.log.error({ err: error }, 'a worker could not be served');
      this.call.end(status, message, code);
    }
  }

  /** Resolves when the response was sent, or never will be. */
  #send(response: MessageInitShape<typeof WorkResponseSchema>): Promise<void> {
    const bytes = frame(toBinary(WorkResponseSchema, create(WorkResponseSchema, response)));
    return new Promise((resolve) => {
      this.#flushed = resolve;
      this.call.send(bytes, () => resolve());
    });
  }
}

function decoded(bytes: Uint8Array): WorkRequest {
  try {
    return fromBinary(WorkRequestSchema, bytes);
  } catch {
    throw new CallError('INVALID_ARGUMENT', 'malformed protobuf message');
  }
}
