import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { encodeMessage, STATUS, type StatusName } from '../status.js';
import type { ByteBudget } from './byte-budget.js';
import { LONGEST_TIMEOUT, timeoutOf } from './timeout.js';

const HEADERS = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' };
/** A caller that was refused mid-stream and keeps sending is cut off after this time. */
const LINGER = 100;

/** One gRPC call on a plain HTTP/2 stream: headers, framed messages, one status at the end. */
export class Call {
  #opened = false;
  #ended = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    /** The headers as received: name, value, name, value … */
    readonly rawHeaders: readonly string[],
    /** Counts the bytes of its unfinished messages. */
    readonly budget: ByteBudget,
  ) {
    stream.on('error', () => {}); // 'close' follows and is handled
    stream.once('close', () => clearTimeout(this.#deadline));
  }

  get ended(): boolean {
    return this.#ended || this.stream.destroyed || this.stream.closed;
  }

  /** Calls `late` when the caller's deadline passes. */
  onDeadline(late: () => void): void {
    const ms = timeoutOf(String(this.headers['grpc-timeout'] ?? ''));
    if (ms <= LONGEST_TIMEOUT) this.#deadline = setTimeout(late, ms).unref();
  }

  /** Passes on what the caller sends, chunk by chunk, until the call ends. */
  listen(read: (chunk: Buffer) => void): void {
    this.stream.on('data', (chunk: Buffer) => {
      if (!this.#ended) read(chunk);
    });
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  /** Sends the headers, so that the caller knows it was accepted. */
  open(): void {
    if (this.#opened || this.ended) return;
    this.#opened = true;
    this.stream.respond(HEADERS, { waitForTrailers: true });
  }

  /**
   * Writes framed messages; returns false when the caller reads too slowly. `flushed` is called once, with or without an error.
   */
  send(frames: Buffer, flushed?: (error?: Error | null) => void): boolean {
    this.open();
    return this.stream.write(frames, flushed);
  }

  end(status: StatusName, message = '', code?: string): void {
    if (this.ended) return;
    this.#ended = true;
    const trailers: Record<string, string> = { 'grpc-status': String(STATUS[status]) };
    if (message !== '') trailers['grpc-message'] = encodeMessage(message);
    if (code !== undefined) trailers['crore-code'] = code;
    if (this.#opened) {
      this.stream.once('wantTrailers', () => this.stream.sendTrailers(trailers));
      this.stream.end();
    } else {
      this.stream.respond({ ...HEADERS, ...trailers }, { endStream: true });
    }
    this.#letGo();
  }

  /** Reads and drops further data for a moment, so that the caller is able to receive the status. */
  #letGo(): void {
    const { stream } = this;
    if (stream.readableEnded) return;
    this.resume();
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), LINGER);
    stream.once('close', () => clearTimeout(timer));
  }
}
