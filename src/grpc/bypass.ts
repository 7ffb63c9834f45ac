import { performServerHandshake, type ServerHttp2Session, type ServerOptions } from 'node:http2';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type Sink, Splitter } from './splitter.js';

/** Bytes that a call, and all calls of a connection together, may have on their way to us. */
export const CALL_WINDOW = 256 * 1024;
export const CONNECTION_WINDOW = 1024 * 1024;
/** What was read is credited to the client in steps, for each is a write. */
const CALL_STEP = CALL_WINDOW / 2;
const CONNECTION_STEP = CONNECTION_WINDOW / 4;
const WINDOW_UPDATE = 8;

/** The way of one call past the library. */
export interface Lane {
  pause(): void;
  resume(): void;
  close(): void;
}

/**
 * Stands between a socket and its HTTP/2 session. Clients put each message into a DATA frame of its own, and a session spends more on a
 * frame than we on the message: so the payload of calls that ask for it goes from the socket to the call, many messages in a row,
 * and the session sees all other frames. Since it knows nothing of those bytes, the client's credit for them is kept here.
 */
export class Bypass extends Duplex {
  readonly #splitter = new Splitter((bytes) => this.#pass(bytes));
  /** Not looked at until the session has told of the stream that was opened before. */
  #rest: Buffer | undefined;
  #owed = 0;
  #updates: Buffer[] = [];

  constructor(private readonly socket: Socket) {
    super();
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#repay());
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => this.destroy());
  }

  /** Opens the session. */
  open(options: ServerOptions): ServerHttp2Session {
    const session = performServerHandshake(this, options);
    this.on('data', () => this.#delivered()); // the session has heard it first
    return session;
  }

  /** Lifts a call that has just been opened; undefined if it is too late for that. */
  lift(id: number, sink: Sink, overrun: () => void): Lane | undefined {
    let owed = 0;
    let paused = false;
    const credit = () => {
      if (paused || owed < CALL_STEP) return;
      this.#credit(id, owed);
      owed = 0;
    };
    const read = (chunk: Buffer, start: number, end: number) => {
      owed += end - start;
      this.#owed += end - start;
      if (owed > CALL_WINDOW) {
        this.#splitter.drop(id);
        overrun();
      } else sink.read(chunk, start, end);
    };
    const rest = () => {
      sink.rest();
      credit();
      this.#repay();
    };
    if (!this.#splitter.lift(id, { read, rest })) return undefined;
    return {
      pause: () => {
        paused = true;
      },
      resume: () => {
        paused = false;
        credit();
        this.#repay();
      },
      close: () => this.#splitter.drop(id),
    };
  }

  override _read(): void {
    if (this.#rest === undefined) this.socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.socket.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const { socket } = this;
    const last = chunks.length - 1;
    socket.cork();
    for (let i = 0; i < last; i++) socket.write(chunks[i]!.chunk);
    socket.write(chunks[last]!.chunk, done);
    socket.uncork();
  }

  override _final(done: () => void): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }

  #take(chunk: Buffer): void {
    if (this.#rest !== undefined) {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      return;
    }
    const end = this.#splitter.take(chunk);
    if (this.#splitter.opened) this.#wait(chunk.subarray(end));
  }

  #wait(rest: Buffer): void {
    this.#rest = rest;
    if (this.readableLength === 0) this.#goOnSoon();
    else this.socket.pause();
  }

  #delivered(): void {
    if (this.readableLength > 0) return;
    if (this.#rest !== undefined) this.#goOnSoon();
    else if (this.socket.isPaused()) this.socket.resume();
  }

  /** The session tells of a new stream in the next tick; ours comes behind. */
  #goOnSoon(): void {
    process.nextTick(() => {
      const rest = this.#rest!;
      this.#rest = undefined;
      this.#take(rest);
      if (this.#rest === undefined && this.readableLength === 0) this.socket.resume();
    });
  }

  #pass(bytes: Buffer): void {
    if (!this.push(bytes)) this.socket.pause();
  }

  #credit(id: number, bytes: number): void {
    const frame = Buffer.alloc(13);
    frame[2] = 4;
    frame[3] = WINDOW_UPDATE;
    frame.writeUInt32BE(id, 5);
    frame.writeUInt32BE(bytes, 9);
    this.#updates.push(frame);
  }

  /** What the session writes comes in whole frames, so that these may stand in between. */
  #repay(): void {
    if (this.socket.writableNeedDrain || !this.socket.writable) return;
    if (this.#owed >= CONNECTION_STEP) {
      this.#credit(0, this.#owed);
      this.#owed = 0;
    }
    if (this.#updates.length === 0) return;
    this.socket.write(Buffer.concat(this.#updates));
    this.#updates = [];
  }
}
