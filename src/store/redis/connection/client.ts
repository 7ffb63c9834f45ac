import { CroreError } from '../../../errors.js';
import { type ScriptName, scriptOf } from '../scripts.js';
import { type Connection, isCluster, type Source } from './connect.js';
import { ConnectionLost } from './connection-lost.js';
import { release } from './node-redis.js';
import { SocketConnection } from './socket-connection.js';

export type Arg = string | Buffer;
export type Reply = Buffer | number | null | Reply[];

export interface ScriptReply {
  reply: Reply;
  /** The reply of a first try was lost, and this is that of a second one. */
  repeated: boolean;
  /** How often it was sent: more than once, other calls may have run before it that were sent after it. */
  tries: number;
}

/** Whether running a script twice is harmless, or a function that changes its arguments to make it harmless. */
export type Again = boolean | ((args: Arg[]) => void);

/** The libraries' error messages for a command that will get no reply. */
const LOST = /^(Command timed out|Socket closed unexpectedly|Socket timeout|Disconnects client|The client is closed)/i;

interface ScriptCall {
  name: ScriptName;
  keys: Arg[];
  args: Arg[];
  again: Again;
  deadline: number;
}

interface Persistence {
  /** On the monotonic clock. */
  deadline: number;
  /** Called when a reply was lost; throws if the call must not be repeated. */
  lost?: (error: ConnectionLost) => void;
  /** Of a first try. */
  failure?: unknown;
}

interface Flight {
  reject: (error: Error) => void;
  sent: boolean;
}

/**
 * Adapter to the client library: scripts and a few plain commands, each with a time limit. The library's own resend
 * after a reconnect is off, because only the caller knows whether a repetition is harmless.
 */
export class RedisClient {
  readonly #redis: Connection;
  readonly #flights = new Set<Flight>();
  /** Wakes the calls that pause before a retry. */
  readonly #waiting = new Set<() => void>();
  #closed = false;
  #why = 'no answer';
  /** Since when there is no connection, by our clock. */
  #lostAt: number | undefined;

  constructor(
    private readonly source: Source,
    readonly shown: string,
    readonly timeout: number,
  ) {
    this.#redis = source.data;
    this.#redis.on('error', this.#note).on('close', this.#drop).on('end', this.#drop).on('ready', this.#wake);
  }

  /** Whether subscribers may be connected to other servers. */
  get isCluster(): boolean {
    return isCluster(this.#redis);
  }

  /** Whether the server runs what one callback sends in the order in which it was sent, unless a call has to be repeated. */
  get isOrdered(): boolean {
    return !this.source.given && !this.isCluster;
  }

  get redis(): Connection {
    return this.#redis;
  }

  async connect(): Promise<void> {
    const late = new CroreError('STORE_UNREACHABLE', `cannot reach ${this.shown} within ${this.timeout} ms`);
    const trying = this.source.given ? this.call('PING') : this.#redis.connect();
    const error = await bounded<unknown>(trying, this.timeout, late).then(
      () => undefined,
      (reason: Error) => reason,
    );
    if (error === undefined) return;
    await this.close();
    const why = error === late || error.message.includes('Connection is closed') ? this.#why : error.message;
    throw new CroreError('STORE_UNREACHABLE', `cannot reach ${this.shown}: ${why}`, { cause: error });
  }

  /** Runs a script; the result says whether it may have run twice, and how often it was sent. Unless that fails, it takes one promise beside the connection's. */
  run(name: ScriptName, keys: Arg[], args: Arg[], again: Again = true): Promise<ScriptReply> {
    const deadline = performance.now() + this.timeout;
    return this.#evaluate(name, keys, args).then(once, (failure: unknown) =>
      this.#runAgain({ name, keys, args, again, deadline }, failure),
    );
  }

  async #runAgain({ name, keys, args, again, deadline }: ScriptCall, failure: unknown): Promise<ScriptReply> {
    let repeated = false;
    let tries = 1;
    const send = (last: unknown) => {
      tries += 1;
      return this.#evaluate(name, keys, args, isUnknownScript(last));
    };
    const lost = (error: ConnectionLost) => {
      if (!again) throw this.#uncertain(name, error);
      if (typeof again === 'function') again(args);
      repeated = true;
    };
    const reply = await this.#persist(send, { deadline, lost, failure });
    return { reply, repeated, tries };
  }

  /** Runs a plain command that is harmless to repeat. */
  call(command: string, ...args: Arg[]): Promise<Reply> {
    return this.#persist(() => this.#send(command, args), { deadline: performance.now() + this.timeout });
  }

  /** Sends plain commands once, with nothing between them; rejects if one fails. */
  inOneGo(commands: readonly (readonly string[])[]): Promise<Reply[]> {
    return Promise.all(commands.map(([command, ...args]) => this.#send(command!, args)));
  }

  /** Retries until a reply arrives, the error is not transient, or the time is up. `send` gets the last failure. */
  async #persist(send: (last: unknown) => Promise<Reply>, { failure, ...limits }: Persistence): Promise<Reply> {
    for (let attempt = 0; ; attempt++) {
      if (failure !== undefined) await this.#recover(failure, attempt, limits);
      try {
        return await send(failure);
      } catch (error) {
        failure = error;
      }
    }
  }

  /** Throws what the caller gets if another try makes no sense. */
  async #recover(failure: unknown, attempt: number, { deadline, lost }: Persistence): Promise<void> {
    if (failure instanceof ConnectionLost && failure.sent) lost?.(failure);
    const isFinal = !isPassing(failure) && !isUnknownScript(failure);
    if (isFinal || performance.now() > deadline || this.#closed) throw this.#translate(failure);
    if (!isUnknownScript(failure)) await this.#pause(Math.min(20 * Math.max(1, attempt), 250));
  }

  /** Pauses, but ends early when the connection is back: it may not last long. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const { source } = this;
    if (source.given) {
      source.data.off('error', this.#note).off('close', this.#drop).off('end', this.#drop).off('ready', this.#wake);
      release(source.data);
    } else source.data.disconnect();
    this.#drop();
    this.#wake();
  }

  #evaluate(name: ScriptName, keys: Arg[], args: Arg[], withSource = false): Promise<Reply> {
    const { sha, source } = scriptOf(name);
    const rest = [String(keys.length), ...keys, ...args];
    return withSource ? this.#send('EVAL', [source, ...rest]) : this.#send('EVALSHA', [sha, ...rest]);
  }

  #send(command: string, args: Arg[]): Promise<Reply> {
    if (this.#closed) return Promise.reject(new CroreError('CLOSED', 'the store has been closed'));
    if (this.#redis instanceof SocketConnection) return this.#redis.callBuffer(command, args) as Promise<Reply>;
    if (this.source.given && this.#redis.status !== 'ready') return this.#notReady();
    return new Promise((resolve, reject) => {
      const flight: Flight = { reject, sent: this.#redis.status === 'ready' };
      this.#flights.add(flight);
      const { send } = this.source;
      const answer = send ? send(command, args) : this.#redis.callBuffer(command, args);
      // Our own connection has a time limit; a given connection may have none.
      (this.source.given ? bounded(answer, this.timeout, new Error('Command timed out')) : answer).then(
        (reply) => {
          this.#flights.delete(flight);
          resolve(reply as Reply);
        },
        (error: Error) => {
          this.#flights.delete(flight);
          reject(LOST.test(error.message) ? new ConnectionLost(error.message, flight.sent) : error);
        },
      );
    });
  }

  /** A given client may queue commands until it is connected: send nothing before that. */
  #notReady(): Promise<never> {
    if (this.#redis.status === 'wait') this.#redis.connect().catch(() => {});
    return Promise.reject(new Error('Connection is closed'));
  }

  readonly #note = (error: Error): void => {
    this.#why = error.message;
  };

  readonly #wake = (): void => {
    this.#lostAt = undefined;
    for (const wake of this.#waiting) wake();
  };

  /**
   * The library forgets commands in flight when a connection closes; reject them now instead of at their time limit.
   */
  readonly #drop = (): void => {
    this.#lostAt ??= Date.now();
    for (const flight of this.#flights) {
      if (!flight.sent && !this.#closed) continue;
      this.#flights.delete(flight);
      flight.reject(new ConnectionLost('the connection was lost', flight.sent));
    }
  };

  #uncertain(name: string, cause: Error): CroreError {
    return new CroreError('STORE_UNCERTAIN', `${name} on ${this.shown}: ${cause.message} before the reply arrived`, {
      cause,
    });
  }

  /** What is out of reach, since when, why, and what happens next. */
  #unreachable(): CroreError {
    const since = this.#lostAt === undefined ? '' : ` since ${new Date(this.#lostAt).toISOString().slice(0, 19)}Z`;
    const text = `${this.shown} is out of reach${since} (${firstLine(this.#why)}); reconnecting`;
    return new CroreError('STORE_UNREACHABLE', text);
  }

  #translate(error: unknown): CroreError {
    if (error instanceof CroreError) return error;
    const { message } = error as Error;
    if (this.#closed) return new CroreError('CLOSED', 'the store has been closed', { cause: error });
    if (isConnectionFailure(error)) return this.#unreachable();
    const code = message.includes('OOM command not allowed')
      ? 'STORE_FULL'
      : message.includes('WRONGTYPE')
        ? 'STORE_CORRUPT'
        : /READONLY|MISCONF|NOREPLICAS/.test(message)
          ? 'STORE_READONLY'
          : 'STORE_UNREACHABLE';
    return new CroreError(code, `${this.shown}: ${firstLine(message)}`, { cause: error });
  }
}

function once(reply: Reply): ScriptReply {
  return { reply, repeated: false, tries: 1 };
}

function isUnknownScript(error: unknown): boolean {
  return error !== undefined && (error as Error).message.includes('NOSCRIPT');
}

function isPassing(error: unknown): boolean {
  return (
    isConnectionFailure(error) ||
    /LOADING|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|READONLY|UNBLOCKED/.test((error as Error).message)
  );
}

/** There is no connection: what the libraries say then is about themselves. */
function isConnectionFailure(error: unknown): boolean {
  if (error instanceof ConnectionLost) return true;
  return /enableOfflineQueue|Connection is closed|ECONN|EPIPE/.test((error as Error).message);
}

function firstLine(message: string): string {
  return message.split('\n')[0]!.slice(0, 300);
}

/** Settles with `promise`, or rejects with `late` after `ms`. */
export function bounded<T>(promise: Promise<T>, ms: number, late: Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
