import { readFileSync } from 'node:fs';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { CroreError } from '../../errors.js';
import { Crore } from '../../proto/crore/v1/crore_pb.js';
import { redactUrl } from '../../redact.js';
import type { OpenStoreOptions } from '../open.js';
import type { Store } from '../store.js';
import type { StoreUrl } from '../url.js';
import { translate } from './failure.js';
import { GrpcStore } from './store.js';
import { toTime } from './times.js';

const LARGEST = 80 * 1024 * 1024;
const PING = 10_000;

/** A store behind a job server: the same contract, over the network. */
export async function openGrpc(
  url: string,
  parsed: Extract<StoreUrl, { kind: 'grpc' }>,
  options: OpenStoreOptions,
): Promise<Store> {
  const { host, port, tls } = parsed;
  const shown = redactUrl(url);
  const token = parsed.token ?? process.env.CRORE_TOKEN;
  const authorize: Interceptor = (next) => (request) => {
    if (token) request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const baseUrl = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const files = tls ? { ca: pem(tls.ca), cert: pem(tls.cert), key: pem(tls.key) } : {};
  const pings = { pingIntervalMs: PING, pingTimeoutMs: PING };
  const sessionManager = new Http2SessionManager(baseUrl, pings, files);
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager,
    interceptors: [authorize],
    readMaxBytes: LARGEST,
    writeMaxBytes: LARGEST,
  });
  const client = createClient(Crore, transport);
  const asked = Date.now();
  try {
    const info = await client.info({}, { timeoutMs: options.timeout });
    const skew = (toTime(info.now) ?? asked) - (asked + Date.now()) / 2;
    const { timeout, clock } = options;
    const hangUp = () => sessionManager.abort();
    return new GrpcStore({ client, url, shown, skew, warnings: info.warnings, timeout, clock, hangUp });
  } catch (error) {
    sessionManager.abort();
    throw translate(error, shown).error;
  }
}

function pem(file: string | undefined): Buffer | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new CroreError('BAD_URL', `cannot read ${file}: ${(error as Error).message.split(',')[0]}`);
  }
}
