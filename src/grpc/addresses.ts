import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { CroreError } from '../errors.js';

export interface Address {
  host: string;
  port: number;
}

/** PEM texts: the server's certificate and key, and the CA of trusted clients. */
export interface TlsMaterial {
  cert: Buffer | string;
  key: Buffer | string;
  ca?: Buffer | string;
  requestCert?: boolean;
  rejectUnauthorized?: boolean;
}

/** Parses `HOST:PORT`, `:PORT` or `PORT`; without a host it means both loopback addresses, because clients connect to either. */
export function parseAddress(text: string, what: string): Address[] {
  const match = /^(?:(\[[^\]]+\]|[^:]*):)?(\d{1,5})$/.exec(text.trim());
  const port = Number(match?.[2] ?? Number.NaN);
  if (!match || !(port >= 0 && port <= 65_535))
    throw new CroreError('BAD_OPTION', `${what}: '${text}' is not HOST:PORT`);
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '');
  if (host !== '' && host !== 'localhost') return [{ host, port }];
  return [
    { host: '127.0.0.1', port },
    { host: '::1', port },
  ];
}

export function isLoopback({ host }: Address): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Opens a server on each address, all on the port of the first when the system chooses it. A machine without IPv6 has only one
 * loopback address, so a missing second one is not an error.
 */
export async function listenAll(addresses: readonly Address[], make: () => Server): Promise<Server[]> {
  const servers: Server[] = [];
  let port = addresses[0]!.port;
  for (const { host } of addresses) {
    const server = make();
    try {
      server.listen({ host, port });
      await once(server, 'listening');
      servers.push(server);
      port = (server.address() as AddressInfo).port;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const noSuchFamily = code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
      if (servers.length > 0 && host === '::1' && noSuchFamily) continue;
      for (const one of servers) one.close();
      const why = code === 'EADDRINUSE' ? 'address already in use (EADDRINUSE)' : (code ?? (error as Error).message);
      throw new CroreError('BAD_OPTION', `cannot listen on ${shown({ host, port })}: ${why}`);
    }
  }
  return servers;
}

export function addressOf(server: Server): Address {
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
}

export function shown({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
