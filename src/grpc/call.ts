import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
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

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
  ) {
    stream.on('error', () => {}); // 'close' follows and says all there is to say
    stream.once('close', () => clearTimeout(this.#deadline));
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
    stream.removeAllListeners('data');
    stream.on('data', () => {});
    stream.resume();
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), LINGER);
    stream.once('close', () => clearTimeout(timer));
  }
}
