import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { ConnectionLost } from './connection-lost.js';
import { openSocket, type SocketAddress } from './open-socket.js';
import { Decoder, encode, type Reply, ServerError } from './resp.js';

export interface Login {
  username: string | undefined;
  password: string | undefined;
  db: number;
}

/** A command that was written and whose reply has not come. */
interface Pending {
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
  until: number;
  /** Its time is over; its reply is dropped. */
  isLate: boolean;
}

const [FIRST_PAUSE, LONGEST_PAUSE] = [20, 1_000];

/**
 * A connection to one server: reconnects by itself, queues nothing while it is not connected, and gives every command a time limit.
 * It is the part of a client of ioredis that a store uses, and needs half the time of the processor for a command.
 * Events: ready, close, error, messageBuffer (channel, message), and written (keys; null: all) for keys that the server remembers for another connection.
 */
export class SocketConnection extends EventEmitter {
  status: 'wait' | 'connecting' | 'ready' | 'reconnecting' | 'end' = 'wait';
  #socket: Socket | undefined;
  #decoder = new Decoder();
  #pending: Pending[] = [];
  /** One timer for all commands: it fires when the time of the oldest is over. */
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #heardAt = 0;
  #attempts = 0;
  #hasSubscribed = false;
  #lastError = new Error('the connection was closed');

  constructor(
    private readonly address: SocketAddress,
    private readonly login: Login,
    /** How long the server has to accept the connection, and to answer a command. */
    private readonly timeout: number,
  ) {
    super();
    this.setMaxListeners(0);
  }

  /** Rejects when the first attempt fails; others follow until `disconnect`. */
  async connect(): Promise<void> {
    if (this.status !== 'wait' && this.status !== 'reconnecting') return;
    this.status = 'connecting';
    try {
      const socket = await openSocket(this.address, this.timeout);
      if (this.#isOver()) {
        socket.destroy();
        throw this.#lastError;
      }
      this.#attach(socket);
      await this.#greet();
      if (this.#isOver()) throw this.#lastError;
    } catch (error) {
      this.#lose(error as Error);
      throw this.#lastError;
    }
    this.status = 'ready';
    this.#attempts = 0;
    this.emit('ready');
  }

  /** With `again`, a new connection follows. */
  disconnect(again = false): void {
    if (again) {
      this.#lose(new Error('the connection was given up'));
      return;
    }
    this.#lastError = new Error('the connection was closed');
    this.status = 'end';
    clearTimeout(this.#retry);
    this.#drop();
  }

  callBuffer(command: string, args: readonly (string | Buffer)[]): Promise<Reply> {
    if (this.status !== 'ready') return Promise.reject(new ConnectionLost(this.#lastError.message, false));
    return this.#send([command, ...args]);
  }

  /** Waits for the connection, and opens it if nobody has. */
  async subscribe(channel: string): Promise<void> {
    if (this.status === 'wait') this.connect().catch(ignore);
    if (this.status !== 'ready') await this.#becomeReady();
    this.#hasSubscribed = true;
    await this.callBuffer('SUBSCRIBE', [channel]);
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.callBuffer('UNSUBSCRIBE', [channel]);
  }

  async ping(): Promise<void> {
    await this.callBuffer('PING', []);
  }

  /** A function, because what the compiler has seen of the status may be outdated after an `await`. */
  #isOver(): boolean {
    return this.status !== 'connecting';
  }

  #becomeReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (done: () => void) => () => {
        clearTimeout(timer);
        this.off('ready', ready);
        done();
      };
      const ready = settle(resolve);
      const timer = setTimeout(
        settle(() => reject(this.#lastError)),
        this.timeout,
      );
      this.once('ready', ready);
    });
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    this.#decoder = new Decoder();
    this.#hasSubscribed = false;
    this.#heardAt = performance.now();
    const lose = (error: Error) => {
      if (this.#socket === socket) this.#lose(error);
    };
    socket.on('data', (chunk: Buffer) => this.#receive(chunk, lose));
    socket.on('error', lose).on('close', () => lose(new Error('the server closed the connection')));
  }

  /** Waits for the replies before anything else is sent: after a refused login or database, commands would use the wrong keys. */
  async #greet(): Promise<void> {
    const { username, password, db } = this.login;
    const lines: string[][] = [];
    if (password !== undefined) lines.push(username === undefined ? ['AUTH', password] : ['AUTH', username, password]);
    if (db !== 0) lines.push(['SELECT', String(db)]);
    await Promise.all(lines.map((line) => this.#send(line).catch(unlessNoPasswordIsNeeded)));
  }

  #send(args: readonly (string | Buffer)[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject, until: performance.now() + this.timeout, isLate: false });
      this.#timer ??= setTimeout(this.#check, this.timeout);
      this.#gather(this.#socket!).write(encode(args));
    });
  }

  /** Commands of the same callback leave with one system call: an add and the claim that follows it, or a settlement and the next claim. */
  #gather(socket: Socket): Socket {
    if (socket.writableCorked > 0) return socket;
    socket.cork();
    process.nextTick(() => socket.uncork());
    return socket;
  }

  #receive(chunk: Buffer, lose: (error: Error) => void): void {
    this.#heardAt = performance.now();
    try {
      for (const reply of this.#decoder.push(chunk)) this.#take(reply, lose);
    } catch (error) {
      lose(error as Error);
    }
  }

  #take(reply: Reply, lose: (error: Error) => void): void {
    if (this.#hasSubscribed && Array.isArray(reply) && String(reply[0]) === 'message') {
      if (Buffer.isBuffer(reply[2])) this.emit('messageBuffer', reply[1], reply[2]);
      else this.emit('written', reply[2] ?? null);
      return;
    }
    const first = this.#pending.shift();
    if (first === undefined) throw new Error('the server sent a reply to nothing');
    if (first.isLate) return;
    if (!(reply instanceof ServerError)) {
      first.resolve(reply);
      return;
    }
    first.reject(new Error(reply.message));
    // The server has become a replica: its address may lead to another one now.
    if (reply.kind === 'READONLY') lose(new Error(reply.message));
  }

  /** A server that has sent nothing for so long is taken for gone. */
  readonly #check = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    for (const command of this.#pending) {
      if (command.until > now) break;
      if (command.isLate) continue;
      command.isLate = true;
      command.reject(new ConnectionLost(`no answer within ${this.timeout} ms`, true));
    }
    if (this.#pending.length === 0) return;
    if (this.#pending[0]!.isLate && now - this.#heardAt >= this.timeout) {
      this.#lose(new Error(`no answer within ${this.timeout} ms`));
      return;
    }
    const next = this.#pending.find((command) => !command.isLate)?.until ?? now + this.timeout;
    this.#timer = setTimeout(this.#check, Math.max(1, Math.ceil(next - now)));
  };

  #lose(error: Error): void {
    if (this.status === 'end' || this.status === 'reconnecting' || this.status === 'wait') return;
    this.status = 'reconnecting';
    this.#lastError = error;
    const pause = Math.min(FIRST_PAUSE * 2 ** Math.min(this.#attempts, 8), LONGEST_PAUSE);
    this.#attempts += 1;
    this.#retry = setTimeout(() => this.connect().catch(ignore), pause);
    if (this.listenerCount('error') > 0) this.emit('error', error);
    this.#drop();
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#socket?.destroy();
    this.#socket = undefined;
    const lost = this.#pending;
    this.#pending = [];
    for (const { reject, isLate } of lost) {
      if (!isLate) reject(new ConnectionLost('the connection was lost', true));
    }
    this.emit('close');
  }
}

/** A password that the server does not ask for is no reason to refuse it. */
function unlessNoPasswordIsNeeded(error: Error): void {
  if (!/without any password configured/.test(error.message)) throw error;
}

function ignore(): void {}
