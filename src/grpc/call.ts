import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Bypass, Lane } from './bypass.js';
import type { Sink } from './splitter.js';
import { encodeMessage, STATUS, type StatusName } from './status.js';

const HEADERS = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' };
/** A caller that was refused in mid-stream and goes on sending is cut off after this. */
const LINGER = 100;
const UNITS: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };
const LONGEST = 2 ** 31 - 1;

/** One gRPC call on a bare HTTP/2 stream: headers, packed messages, one status at the end. */
export class Call {
  #opened = false;
  #ended = false;
  #deadline: NodeJS.Timeout | undefined;
  #lane: Lane | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    private readonly bypass?: Bypass,
  ) {
    stream.on('error', () => {}); // 'close' follows and says all there is to say
    stream.once('close', () => {
      clearTimeout(this.#deadline);
      this.#lane?.close();
    });
  }

  get ended(): boolean {
    return this.#ended || this.stream.destroyed || this.stream.closed;
  }

  /** Calls `late` when the caller's own deadline passes. */
  onDeadline(late: () => void): void {
    const match = /^(\d{1,8})([HMSmun])$/.exec(String(this.headers['grpc-timeout'] ?? ''));
    if (!match) return;
    const ms = Number(match[1]) * UNITS[match[2]!]!;
    this.#deadline = setTimeout(late, Math.min(ms, LONGEST)).unref();
  }

  /** Reads what the caller sends, past the session where that is possible, until the call ends. */
  listen(sink: Sink): void {
    const { stream } = this;
    const read = (chunk: Buffer, start: number, end: number) => {
      if (!this.#ended) sink.read(chunk, start, end);
    };
    const rest = () => {
      if (!this.#ended) sink.rest();
    };
    stream.on('data', (chunk: Buffer) => {
      read(chunk, 0, chunk.length);
      rest();
    });
    // The session compares an announced length with what it has seen.
    if (this.headers['content-length'] !== undefined || stream.id === undefined) return;
    const overrun = () => stream.close(constants.NGHTTP2_FLOW_CONTROL_ERROR);
    this.#lane = this.bypass?.lift(stream.id, { read, rest }, overrun);
  }

  pause(): void {
    this.stream.pause();
    this.#lane?.pause();
  }

  resume(): void {
    this.stream.resume();
    this.#lane?.resume();
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
