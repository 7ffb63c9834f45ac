import { Server, type ServerSetup } from '../../../dist/grpc/server.js';
import { openStore } from '../../../dist/store/open.js';
import type { Store } from '../../../dist/store/store.js';

export interface TestServer {
  server: Server;
  store: Store;
  /** HOST:PORT of gRPC. */
  address: string;
  /** URL of HTTP/JSON. */
  http: string;
  logs: { level: string; text: string; fields: object }[];
  close: () => Promise<void>;
}

export const LIMITS = {
  message: 4_194_304,
  metadata: 65_536,
  streams: 1_000,
  connections: 1_000,
  buffered: 134_217_728,
  names: 100,
};

/** A server in this process, on free ports. */
export async function startServer(
  options: Partial<ServerSetup> & { url?: string; clock?: () => number } = {},
): Promise<TestServer> {
  const { url = 'sqlite::memory:', clock, ...rest } = options;
  const store = rest.store ?? (await openStore(url, { timeout: 10_000, clock }));
  const logs: TestServer['logs'] = [];
  const log = (level: string) => (fields: object, text: string) => void logs.push({ level, text, fields });
  const server = await Server.start({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    http: [{ host: '127.0.0.1', port: 0 }],
    limits: LIMITS,
    lakh: { maxRetry: 30, backoff: { kind: 'quartic', base: 15_000, jitter: 30_000, cap: 2_592_000_000 } },
    lease: 10_000,
    heartbeatEvery: 3_000,
    sweep: 50,
    maxCrashes: 3,
    keepalive: { every: 20_000, timeout: 10_000 },
    handshake: 10_000,
    stall: 5_000,
    grace: 5_000,
    timeout: 10_000,
    version: '0.0.0-test',
    log: { info: log('info'), warn: log('warn'), error: log('error') },
    ...rest,
    store,
  });
  const { port } = server.addresses[0]!;
  return {
    server,
    store,
    address: `127.0.0.1:${port}`,
    http: server.httpAddresses[0] ? `http://127.0.0.1:${server.httpAddresses[0].port}` : '',
    logs,
    close: () => server.close(),
  };
}
