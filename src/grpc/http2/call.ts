import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { encodeMessage, STATUS, type StatusName } from '../status.js';
import type { ByteBudget } from './byte-budget.js';
import { LONGEST_TIMEOUT, timeoutOf } from './timeout.js';

const HEADERS = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' };
/** A caller that was refused in mid-stream and goes on sending is cut off after this. */
const LINGER = 100;

/** One gRPC call on a bare HTTP/2 stream: headers, packed messages, one status at the end. */
export class Call {
  #opened = false;
  #ended = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    /** The same as they came: name, value, name, value … */
    readonly rawHeaders: readonly string[],
    /** Where its unfinished messages are counted. */
    readonly budget: ByteBudget,
  ) {
    stream.on('error', () => {}); // 'close' follows and says all there is to say
    stream.once('close', () => clearTimeout(this.#deadline));
  }

  get ended(): boolean {
    return this.#ended || this.stream.destroyed || this.stream.closed;
  }

  /** Calls `late` when the caller's own deadline passes. */
  onDeadline(late: () => void): void {
    const ms = timeoutOf(String(this.headers['grpc-timeout'] ?? ''));
    if (ms <= LONGEST_TIMEOUT) this.#deadline = setTimeout(late, ms).unref();
  }

  /** Hands on what the caller sends, chunk by chunk, until the call ends. */
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

  /** Sends the headers, so that the caller knows it was let in. */
  open(): void {
    if (this.#opened || this.ended) return;
    this.#opened = true;
    this.stream.respond(HEADERS, { waitForTrailers: true });
  }

  /** Writes framed messages; false when the caller reads too slowly. `flushed` hears once, with an error or without. */
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

  /** What still comes is read and dropped for a moment: the caller has to have room to hear the status. */
  #letGo(): void {
    const { stream } = this;
    if (stream.readableEnded) return;
    this.resume();
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), LINGER);
    stream.once('close', () => clearTimeout(timer));
  }
}
