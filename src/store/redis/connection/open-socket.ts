import { connect, isIP, type Socket } from 'node:net';

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
  /** A unix socket, instead of host and port. */
  readonly path: string;
  /** The contents of the certificates of a TLS connection; undefined for a plain one. */
  readonly tls: { readonly ca?: Secret; readonly cert?: Secret; readonly key?: Secret } | undefined;
}

type Secret = string | Buffer;

const KEEP_ALIVE = 15_000;

/** Resolves when the server has accepted the connection. */
export async function openSocket(address: SocketAddress, within: number): Promise<Socket> {
  if (address.host !== 'localhost') return connectTo(address, address.host, within);
  // The loopback address needs no name lookup, which would take 5 ms of a start on an idle machine.
  return connectTo(address, '127.0.0.1', within).catch((refused: NodeJS.ErrnoException) => {
    if (refused.code !== 'ECONNREFUSED') throw refused;
    return connectTo(address, '::1', within).catch(() => {
      throw refused;
    });
  });
}

async function connectTo(address: SocketAddress, host: string, within: number): Promise<Socket> {
  const socket = await start(address, host);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${Math.round(within)} ms`)), within);
    const settle = (after: () => void) => () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      after();
    };
    socket.once(address.tls ? 'secureConnect' : 'connect', settle(resolve));
    socket.once('error', (error) => settle(() => reject(error))());
  });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE);
  return socket;
}

async function start({ path, host: name, port, tls }: SocketAddress, host: string): Promise<Socket> {
  if (path !== '') return connect({ path });
  if (!tls) return connect({ host, port });
  const { connect: connectSafely } = await import('node:tls');
  return connectSafely({ host, port, servername: isIP(name) ? '' : name, ...tls });
}
