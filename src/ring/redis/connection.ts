import type { Socket } from 'node:net';
import { now } from '../../process/clock.js';
import { openSocket } from '../../store/redis/connection/open-socket.js';
import { Decoder, encode, type Reply, ServerError } from '../../store/redis/connection/resp.js';
import type { SocketTarget } from '../url.js';
import { serverFailure, unreachable } from './failure.js';

/** Anything that sends commands to Redis: our own socket, or a full client for Sentinel and Cluster. */
export interface Link {
  call(args: readonly (string | Buffer)[], within: number): Promise<Reply>;
  /** Sends a command whose reply nobody needs, behind those sent before; nothing happens without a connection. */
  post(args: readonly (string | Buffer)[]): void;
  close(): void;
}

interface Pending {
  resolve(reply: Reply): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * One socket, opened for the first command and reopened after it breaks. Commands are pipelined and answered in order.
 * A command that is not answered in time breaks the socket, since a late reply could be taken for that of another
 * command.
 */
export class Connection implements Link {
  private socket: Socket | undefined;
  private decoder = new Decoder();
  private pending: Pending[] = [];
  private opening: Promise<void> | undefined;

  constructor(private readonly target: SocketTarget) {}

  async call(args: readonly (string | Buffer)[], within: number): Promise<Reply> {
    const late = now() + within;
    if (this.opening) await inTime(this.opening, within, this.target.shown);
    else if (!this.socket) await this.opened(within);
    const reply = await this.send(args, Math.max(1, late - now()));
    if (reply instanceof ServerError) throw serverFailure(this.target.shown, reply);
    return reply;
  }

  /** Without a time limit: it must not break the connection under others, nor open one. */
  post(args: readonly (string | Buffer)[]): void {
    if (!this.socket || this.opening) return;
    this.pending.push({ resolve: ignore, reject: ignore, timer: undefined });
    this.socket.write(encode(args));
  }

  close(): void {
    this.break(new Error('closed'));
  }

  private send(args: readonly (string | Buffer)[], within: number): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(() => this.break(new Error(`no answer within ${Math.round(within)} ms`)), within);
      this.pending.push({ resolve, reject, timer });
      if (this.socket) this.socket.write(encode(args));
      else this.break(new Error('the connection was closed'));
    });
  }

  private opened(within: number): Promise<void> {
    this.opening ??= this.open(within).finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  private async open(within: number): Promise<void> {
    const socket = await connect(this.target, within).catch((cause) => {
      throw unreachable(this.target.shown, cause);
    });
    this.socket = socket;
    this.decoder = new Decoder();
    socket.on('data', (chunk: Buffer) => this.receive(chunk));
    socket.on('error', (error) => this.socket === socket && this.break(error));
    socket.on('close', () => this.socket === socket && this.break(new Error('the server closed the connection')));
    await this.greet(within);
  }

  /**
   * Waits for the replies before anything else is sent: after a refused login or database, commands would use the wrong
   * keys.
   */
  private async greet(within: number): Promise<void> {
    const { user, password, db } = this.target;
    const lines: string[][] = [];
    if (password !== '') lines.push(user === '' ? ['AUTH', password] : ['AUTH', user, password]);
    if (db !== 0) lines.push(['SELECT', String(db)]);
    for (const reply of await Promise.all(lines.map((line) => this.send(line, within)))) {
      if (!(reply instanceof ServerError)) continue;
      this.break(new Error('refused'));
      throw serverFailure(this.target.shown, reply);
    }
  }

  private receive(chunk: Buffer): void {
    try {
      for (const reply of this.decoder.push(chunk)) {
        const first = this.pending.shift();
        clearTimeout(first?.timer);
        first?.resolve(reply);
      }
    } catch (error) {
      this.break(error as Error);
    }
  }

  private break(cause: Error): void {
    const failure = unreachable(this.target.shown, cause);
    this.socket?.destroy();
    this.socket = undefined;
    for (const { reject, timer } of this.pending.splice(0)) {
      clearTimeout(timer);
      reject(failure);
    }
  }
}

function ignore(): void {}

/** The caller that started the connection may have a longer timeout than one that joins. */
async function inTime(opening: Promise<void>, within: number, shown: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(unreachable(shown, new Error(`no connection within ${Math.round(within)} ms`))),
      within,
    );
  });
  try {
    await Promise.race([opening, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function connect(target: SocketTarget, within: number): Promise<Socket> {
  return openSocket({ ...target, tls: target.tls && (await readFiles(target.tls)) }, within);
}

async function readFiles(names: Record<string, string>): Promise<Record<string, Buffer>> {
  const { readFileSync } = await import('node:fs');
  return Object.fromEntries(Object.entries(names).map(([name, file]) => [name, readFileSync(file)]));
}
