import { readFileSync, statSync } from 'node:fs';
import { servedDashboard } from '../../dashboard/served.js';
import type { Engine } from '../../engine/engine.js';
import { CroreError } from '../../errors.js';
import { isLoopback, parseAddress, type TlsMaterial } from '../../grpc/addresses.js';
import type { Log } from '../../grpc/context.js';
import type { ServerSetup } from '../../grpc/server.js';
import { redactUrl } from '../../redact.js';
import { openStore } from '../../store/open.js';
import { readStoreUrl } from '../action.js';
import type { Values } from './settings.js';

/** Builds a server's setup from its settings; reads files and checks addresses before the store is opened. */
export async function setupOf(values: Values, version: string, log: Log): Promise<ServerSetup> {
  const addresses = parseAddress(values.addr as string, 'addr');
  const http = values.http === 'off' ? undefined : parseAddress(values.http as string, 'http');
  const tls = tlsOf(values);
  const token = tokenOf(values, 'token', 'token_file');
  const readToken = tokenOf(values, 'read_token', 'read_token_file');
  if (readToken !== undefined && token === undefined)
    throw new CroreError('BAD_OPTION', 'read-token needs a token as well: without one, everybody may do everything');
  const tokens = { write: token, read: readToken };
  const open = [...addresses, ...(http ?? [])].filter((one) => !isLoopback(one));
  if (open.length > 0 && !values.insecure && !(tls && (token !== undefined || tls.ca !== undefined))) {
    throw new CroreError(
      'BAD_OPTION',
      `${open[0]!.host} is reachable from other machines: set tls-cert, tls-key and a token or client-ca, or use --insecure`,
    );
  }
  const timeout = values.timeout as number;
  const lease = Math.max(500, values.lease as number);
  const number = (key: keyof Values) => values[key] as number;
  const url = readStoreUrl(values.store as string);
  // `ps` shows the command line to every user of the machine.
  if (redactUrl(url) !== url || values.token !== undefined || values.read_token !== undefined)
    process.title = 'crore serve';
  const dashboardOf = (engine: Engine) =>
    servedDashboard({
      ...{ engine, url, version, tokens, secure: tls !== undefined },
      most: values.dashboard as 'read' | 'write',
      log: (fields, text) => log.info(fields, text),
    });
  const store = await openStore(url, { timeout });
  for (const warning of store.warnings) log.warn({}, warning);
  return {
    store,
    addresses,
    http,
    tls,
    tokens,
    ...(values.dashboard === 'off' ? {} : { dashboard: dashboardOf }),
    limits: {
      message: number('max_message'),
      metadata: number('max_metadata'),
      streams: number('max_streams'),
      connections: number('max_connections'),
      buffered: number('max_buffered'),
      names: number('max_names'),
    },
    lakh: {
      maxRetry: number('max_retry'),
      backoff: Object.freeze({
        kind: 'quartic',
        base: number('retry_base'),
        jitter: number('retry_jitter'),
        cap: number('retry_cap'),
      }),
    },
    lease,
    heartbeatEvery: Math.floor(lease / 3),
    sweep: Math.max(20, Math.min(number('sweep'), lease / 2)),
    maxCrashes: number('max_crashes'),
    keepalive: { every: Math.max(100, number('keepalive')), timeout: Math.max(100, number('keepalive_timeout')) },
    handshake: Math.max(100, number('handshake_timeout')),
    stall: Math.max(100, number('stall')),
    grace: number('grace'),
    timeout,
    readyMaxAge: number('ready_max_age'),
    version,
    log,
  };
}

function tlsOf(values: Values): TlsMaterial | undefined {
  const { tls_cert: cert, tls_key: key, client_ca: ca } = values;
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new CroreError('BAD_OPTION', 'TLS needs both tls-cert and tls-key');
  const clients = ca === undefined ? {} : { ca: read(ca, 'client-ca'), requestCert: true, rejectUnauthorized: true };
  return { cert: read(cert, 'tls-cert'), key: read(key, 'tls-key'), ...clients };
}

function tokenOf(
  values: Values,
  key: 'token' | 'read_token',
  fileKey: 'token_file' | 'read_token_file',
): string | undefined {
  if (values[key] !== undefined) return String(values[key]);
  if (values[fileKey] === undefined) return undefined;
  const shown = fileKey.replaceAll('_', '-');
  const token = read(values[fileKey], shown).toString().trim();
  if (token === '' || /\s/.test(token))
    throw new CroreError('BAD_OPTION', `${shown} ${values[fileKey]} must contain a single word`);
  return token;
}

function read(file: unknown, what: string): Buffer {
  try {
    if (statSync(String(file)).size > 1_048_576) throw new Error('file too large');
    return readFileSync(String(file));
  } catch (error) {
    throw new CroreError('BAD_OPTION', `cannot read ${what} ${file}: ${(error as Error).message.split(',')[0]}`);
  }
}
