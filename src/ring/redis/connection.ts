import { connect as connectSocket, isIP, type Socket } from 'node:net';
import { now } from '../../process/clock.js';
import type { SocketTarget } from '../url.js';
import { serverFailure, unreachable } from './failure.js';
import { Decoder, encode, type Reply, ServerError } from './resp.js';

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
  if (target.host !== 'localhost') return connectTo(target, target.host, within);
  // The loopback address needs no name lookup, which would take 5 ms of a start on an idle machine.
  return connectTo(target, '127.0.0.1', within).catch((refused: NodeJS.ErrnoException) => {
    if (refused.code !== 'ECONNREFUSED') throw refused;
    return connectTo(target, '::1', within).catch(() => {
      throw refused;
    });
  });
}

async function connectTo(target: SocketTarget, host: string, within: number): Promise<Socket> {
  const socket = await start(target, host);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${Math.round(within)} ms`)), within);
    const settle = (after: () => void) => () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      after();
    };
    socket.once(target.tls ? 'secureConnect' : 'connect', settle(resolve));
    socket.once('error', (error) => settle(() => reject(error))());
  });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 15_000);
  return socket;
}

async function start(target: SocketTarget, host: string): Promise<Socket> {
  if (target.path !== '') return connectSocket({ path: target.path });
  if (!target.tls) return connectSocket({ host, port: target.port });
  const [tls, { readFileSync }] = await Promise.all([import('node:tls'), import('node:fs')]);
  const files = Object.entries(target.tls).map(([name, file]) => [name, readFileSync(file)]);
  const servername = isIP(target.host) ? '' : target.host;
  return tls.connect({ host, port: target.port, servername, ...Object.fromEntries(files) });
}
