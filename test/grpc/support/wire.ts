import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Handwritten HTTP/2, for what no well-behaved client does. */

export const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION] = [
  0, 1, 3, 4, 6, 7, 8, 9,
];
export const [END_STREAM, END_HEADERS, PADDED] = [1, 4, 8];
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** The setting for the initial window of calls, and its value. */
const WIDE = Buffer.from([0, 4, 0x7f, 0, 0, 0]);
const SHUT = Buffer.from([0, 4, 0, 0, 0, 0]);
/** How much the server may send to a call: as much as the sockets take, the default of the protocol, or nothing. */
export type Window = 'wide' | 'default' | 'shut';

export interface Frame {
  type: number;
  flags: number;
  id: number;
  payload: Buffer;
}

export function frame(type: number, flags: number, id: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

/** One gRPC message with its prefix. */
export function message(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** A lakh job with one argument. */
export function job(id: string, name: string, arg: string): Buffer {
  const field = (tag: number, text: string) => {
    const bytes = Buffer.from(text);
    const length: number[] = [];
    let left = bytes.length;
    for (; left > 127; left >>= 7) length.push((left & 127) | 128);
    return Buffer.concat([Buffer.from([tag, ...length, left]), bytes]);
  };
  return message(Buffer.concat([field(0x0a, id), field(0x12, name), field(0x1a, arg)]));
}

/** An uncompressed header block. An authority of null is omitted. */
export function requestHeaders(
  path: string,
  more: Record<string, string> = {},
  { method = 'POST', authority = 'localhost' }: { method?: string; authority?: string | null } = {},
): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    const { length } = bytes;
    const size = length < 127 ? [length] : [127, ((length - 127) & 127) | 128, (length - 127) >> 7];
    return Buffer.concat([Buffer.from(size), bytes]);
  };
  const literal = ([name, value]: [string, string]) => Buffer.concat([Buffer.from([0]), text(name), text(value)]);
  const first: [string, string][] = [
    [':method', method],
    [':scheme', 'http'],
    [':path', path],
  ];
  if (authority !== null) first.push([':authority', authority]);
  const rest = Object.entries({ 'content-type': 'application/grpc', te: 'trailers', ...more });
  return Buffer.concat([...first, ...rest].map(literal));
}

/** A connection that sends nothing by itself but the preface, and parses whole frames. */
export class Wire {
  readonly heard: Frame[] = [];
  /** The send windows granted by the server, of the connection (0) and of calls. */
  readonly windows = new Map<number, number>([[0, 65_535]]);
  #initial = 65_535;
  #rest = Buffer.alloc(0);

  private constructor(
    readonly socket: Socket,
    window: Window,
  ) {
    socket.on('data', (chunk: Buffer) => this.#hear(chunk));
    socket.on('error', () => {});
    socket.write(
      Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, { wide: WIDE, default: undefined, shut: SHUT }[window])]),
    );
    if (window === 'wide') socket.write(frame(WINDOW_UPDATE, 0, 0, WIDE.subarray(2)));
  }

  static async dial(address: string, window: Window = 'default'): Promise<Wire> {
    const [host, port] = address.split(':');
    const socket = connect(Number(port), host);
    await once(socket, 'connect');
    return new Wire(socket, window);
  }

  open(id: number, path: string, headers: Record<string, string> = {}): void {
    this.windows.set(id, this.#initial);
    this.socket.write(frame(HEADERS, END_HEADERS, id, requestHeaders(path, headers)));
  }

  /** How many bytes a call may send now. */
  room(id: number): number {
    return Math.min(this.windows.get(0)!, this.windows.get(id)!);
  }

  /** Counts bytes of a call that were sent by hand. */
  spend(id: number, bytes: number): void {
    for (const one of [0, id]) this.windows.set(one, this.windows.get(one)! - bytes);
  }

  data(id: number, payload: Buffer, flags = 0): void {
    this.spend(id, payload.length);
    this.socket.write(frame(DATA, flags, id, payload));
  }

  /** Lets the server send as much as it likes to a call. */
  giveCredit(id: number): void {
    for (const one of [0, id]) this.socket.write(frame(WINDOW_UPDATE, 0, one, WIDE.subarray(2)));
  }

  find(type: number, id: number): Frame | undefined {
    return this.heard.findLast((one) => one.type === type && one.id === id);
  }

  #hear(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const size = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + size) return;
      const id = this.#rest.readUInt32BE(5) & 0x7fffffff;
      const [type, flags] = [this.#rest[3]!, this.#rest[4]!];
      this.#take({ type, flags, id, payload: this.#rest.subarray(9, 9 + size) });
      this.#rest = this.#rest.subarray(9 + size);
    }
  }

  #take(one: Frame): void {
    this.heard.push(one);
    const { type, flags, id, payload } = one;
    if (type === WINDOW_UPDATE && this.windows.has(id))
      this.windows.set(id, this.windows.get(id)! + payload.readUInt32BE(0));
    if (type === PING && flags === 0) this.socket.write(frame(PING, 1, 0, payload));
    if (type !== SETTINGS || flags !== 0) return;
    for (let i = 0; i + 6 <= payload.length; i += 6) {
      if (payload.readUInt16BE(i) !== 4) continue;
      const size = payload.readUInt32BE(i + 2);
      for (const [call, window] of this.windows) if (call !== 0) this.windows.set(call, window + size - this.#initial);
      this.#initial = size;
    }
    this.socket.write(frame(SETTINGS, 1, 0));
  }
}
