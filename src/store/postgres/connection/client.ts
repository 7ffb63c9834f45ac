import postgres, { type Sql } from 'postgres';
import { CroreError } from '../../../errors.js';
import { type Arg, JsonArg, readFlags, storable, TextList } from './arguments.js';
import { CONCERNS_OTHERS, codeOf, firstLine, isConflict, isConnectionFailure, translate } from './failure.js';
import type { DriverOptions } from './options.js';

export type Row = Record<string, unknown>;

/** Whether running a function twice is harmless, or the arguments that make it harmless. */
export type Again = boolean | (() => readonly Arg[]);

export interface Answer {
  rows: Row[];
  repeated: boolean;
  /** The process of the server to which the connection was made; behind a pooler, it is not the one that answers. */
  pid?: number;
}

/** A call that is being sent: the driver notes in `state` which connection it was written to. */
type Sent = Promise<Row[]> & { state?: { pid?: number } | null };

/** The names of tables and functions: see schema.ts. */
export interface Names {
  /** The quoted schema. */
  readonly quoted: string;
  fill(text: string): string;
}

/** The connection was lost, or the call took too long. */
class ConnectionLost extends Error {
  constructor(
    readonly reason: Error,
    readonly sent: boolean,
  ) {
    super(firstLine(reason.message));
  }
}

class TooLate extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

const MOST_CONFLICTS = 5;

/** Functions that are called through a procedure, which gives the lock of the queue back before it waits for the disk: see sql/jobs/durable.sql. */
const DURABLE = new Set(['push', 'add_plain', 'done', 'done_tasks', 'settle', 'enqueue_tasks', 'finish_tasks']);

/**
 * Adapter to the driver: every call has a time limit and is repeated where that is harmless. When one takes too long, all connections are replaced:
 * nothing that waits in the driver is sent after its caller has got an error.
 */
export class PostgresClient {
  readonly #texts = new Map<string, string>();
  #sql: Sql<{ bigint: number }>;
  #closed = false;
  #lostAt: number | undefined;
  #why = 'no answer';
  /** Whether statements are prepared; not before it is known that no pooler gives each transaction another connection. */
  prepare = false;
  /** Says more about a function or table that is missing. */
  explain: (() => Promise<CroreError | undefined>) | undefined;

  constructor(
    private readonly options: DriverOptions,
    readonly shown: string,
    private readonly names: Names,
    readonly timeout: number,
  ) {
    this.#sql = postgres(options);
  }

  /** The quoted schema. */
  get schema(): string {
    return this.names.quoted;
  }

  /** Calls a function that returns rows. `again`: repeating it is harmless. `within`: its time limit in milliseconds. */
  async rows(name: string, args: readonly Arg[], again: Again = true, within = this.timeout): Promise<Row[]> {
    return (await this.run(name, args, again, within)).rows;
  }

  /** The same; says whether the function may have run twice. */
  run(name: string, args: readonly Arg[], again: Again = true, within = this.timeout): Promise<Answer> {
    return this.#persist(name, this.#textOf('* from', name, args), args, again, within);
  }

  /** Calls a function that returns a flag for each entry; one that a lost first try may have changed counts as changed. */
  async flags(name: string, args: readonly Arg[]): Promise<boolean[]> {
    const { rows, repeated } = await this.run(name, args);
    return readFlags(rows[0]![name]).map((flag) => repeated || flag);
  }

  /** Calls a function that returns one value. */
  async value(name: string, args: readonly Arg[], again = true, within = this.timeout): Promise<unknown> {
    const { rows } = await this.#persist(name, this.#textOf('', name, args), args, again, within);
    return rows[0]![name];
  }

  /**
   * Calls a function that commits without waiting for the disk, gives its rows to `early`, and waits for the disk on the same connection: if the server has
   * crashed in between, that fails. Returns false if nothing has happened: then the usual way has to be tried. Repeats nothing.
   */
  async ahead(name: string, args: readonly Arg[], early: (rows: Row[]) => void): Promise<boolean> {
    if (this.#closed) return false;
    const deadline = performance.now() + this.timeout;
    const left = () => Math.max(1, deadline - performance.now());
    const sql = this.#sql;
    const reserving = sql.reserve();
    const own = await bounded(reserving, left(), () => new TooLate(this.timeout)).catch(() => undefined);
    if (!own) {
      reserving.then((late) => late.release()).catch(() => {});
      return false;
    }
    let pid: number | undefined;
    // The driver would use a connection again that was given back after it was closed.
    let isLost = false;
    const send = async (text: string, values: Value[]) => {
      const query = own.unsafe(text, values as never[], { prepare: this.prepare }) as unknown as Sent;
      const rows = await bounded(query, left(), () => new TooLate(this.timeout));
      pid ??= query.state?.pid;
      if (query.state?.pid !== pid) throw new TooLate(this.timeout);
      return rows;
    };
    try {
      const rows = await send(this.#textOf('* from', name, args), args.map(plain));
      if (rows.length === 0) return false;
      early(rows);
      await send(this.#textOf('', 'wait_for_disk', []), []);
      return true;
    } catch (error) {
      isLost = error instanceof TooLate || isConnectionFailure(error);
      if (error instanceof TooLate) this.#replace(sql);
      if (pid === undefined && !isLost) return false;
      throw this.#uncertain(name, new ConnectionLost(error as Error, true));
    } finally {
      if (!isLost) own.release();
    }
  }

  /** Reads with a query of its own; `crore.` stands for the schema. */
  async read(query: string, args: readonly Arg[], within = this.timeout): Promise<Row[]> {
    return (await this.ask(query, args, within)).rows;
  }

  ask(query: string, args: readonly Arg[], within = this.timeout): Promise<Answer> {
    let text = this.#texts.get(query);
    if (text === undefined) {
      text = this.names.fill(query);
      this.#texts.set(query, text);
    }
    return this.#persist('read', text, args, true, within);
  }

  /** Runs several statements as one transaction, for setting up the schema. */
  async script(text: string): Promise<void> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        await bounded(this.#sql.unsafe(text).simple(), Math.max(this.timeout, 60_000), () => new TooLate(this.timeout));
        return;
      } catch (error) {
        if (!isConflict(error) || conflicts >= MOST_CONFLICTS) throw translate(error, this.shown);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#sql.end({ timeout: 0 }).catch(() => {});
  }

  #textOf(what: string, name: string, args: readonly Arg[]): string {
    // What is usually a list of texts is another kind of argument if it cannot be one.
    const key = args.reduce<string>(
      (known, arg, i) => (arg instanceof TextList ? `${known} ${i}` : known),
      what + name,
    );
    let text = this.#texts.get(key);
    if (text === undefined) {
      const list = args.map((arg, i) => expressionOf(arg, `$${i + 1}`)).join(', ');
      text = this.names.fill(
        DURABLE.has(name)
          ? `call crore.durable_${name}(null, ${list})`
          : `select ${what} crore.${name}(${list}) as "${name}"`,
      );
      this.#texts.set(key, text);
    }
    return text;
  }

  /** Retries until an answer arrives, the error is not transient, or the time is up. */
  async #persist(name: string, text: string, args: readonly Arg[], again: Again, within: number): Promise<Answer> {
    const deadline = performance.now() + within;
    let values = args.map(plain);
    let conflicts = 0;
    let repeated = false;
    for (let attempt = 1; ; attempt++) {
      if (this.#closed) throw new CroreError('CLOSED', 'the store has been closed');
      try {
        const answer = await this.#send(text, values, Math.max(1, deadline - performance.now()), within);
        this.#lostAt = undefined;
        return { ...answer, repeated };
      } catch (error) {
        if (this.#closed) throw new CroreError('CLOSED', 'the store has been closed', { cause: error });
        if (error instanceof ConnectionLost) {
          this.#note(error);
          if (error.sent && !again) throw this.#uncertain(name, error);
          if (error.sent && typeof again === 'function') values = again().map(plain);
          repeated ||= error.sent;
          if (performance.now() > deadline) throw this.#unreachable(error.reason);
        } else if (!isConflict(error) || ++conflicts > MOST_CONFLICTS) {
          if (codeOf(error) === CONCERNS_OTHERS) throw error;
          throw await this.#explained(translate(error, this.shown));
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(10 * attempt, 250) * (0.5 + Math.random() / 2)));
      }
    }
  }

  async #explained(error: CroreError): Promise<CroreError> {
    const { explain } = this;
    if (error.code !== 'STORE_GONE' || !explain) return error;
    // Its own queries may find that something is missing, too.
    this.explain = undefined;
    const better = await explain();
    this.explain = explain;
    return better ?? error;
  }

  async #send(text: string, values: Value[], ms: number, within: number): Promise<{ rows: Row[]; pid?: number }> {
    const sql = this.#sql;
    const query = sql.unsafe(text, values as never[], { prepare: this.prepare }) as unknown as Sent;
    try {
      const rows = await bounded(query, ms, () => new TooLate(within));
      return { rows, pid: query.state?.pid };
    } catch (error) {
      const isLate = error instanceof TooLate;
      if (isLate) this.#replace(sql);
      if (!isLate && !isConnectionFailure(error)) throw error;
      throw new ConnectionLost(error as Error, query.state !== undefined && query.state !== null);
    }
  }

  #replace(old: Sql<{ bigint: number }>): void {
    if (this.#sql !== old || this.#closed) return;
    this.#sql = postgres(this.options);
    old.end({ timeout: 0 }).catch(() => {});
  }

  /** Why there is no connection says more than that a call took too long. */
  #note({ reason, message }: ConnectionLost): void {
    if (this.#lostAt === undefined || isConnectionFailure(reason)) this.#why = message;
    this.#lostAt ??= Date.now();
  }

  #uncertain(name: string, cause: Error): CroreError {
    return new CroreError('STORE_UNCERTAIN', `${name} on ${this.shown}: ${cause.message} before the reply arrived`, {
      cause,
    });
  }

  #unreachable(cause: Error): CroreError {
    const since = this.#lostAt === undefined ? '' : ` since ${new Date(this.#lostAt).toISOString().slice(0, 19)}Z`;
    return new CroreError('STORE_UNREACHABLE', `${this.shown} is out of reach${since} (${this.#why}); reconnecting`, {
      cause,
    });
  }
}

function expressionOf(arg: Arg, parameter: string): string {
  if (arg instanceof JsonArg) return `${parameter}::text::jsonb`;
  return arg instanceof TextList ? TextList.of(parameter) : parameter;
}

type Value = string | number | boolean | null | Buffer;

function plain(arg: Arg): Value {
  if (arg instanceof JsonArg || arg instanceof TextList) return arg.text;
  if (typeof arg === 'string') return storable(arg);
  if (arg instanceof Uint8Array)
    return Buffer.isBuffer(arg) ? arg : Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength);
  return arg;
}

/** The error is made when it is needed: one with its stack takes 40 µs. */
function bounded<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
