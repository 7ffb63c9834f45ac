import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Engine } from '../engine/engine.js';
import { redactUrl } from '../redact.js';
import type { Access } from './api.js';
import { Dashboard } from './handler.js';
import { LogIns, type Tokens } from './http/log-in.js';
import { addressOf, nodeListener } from './http/node-listener.js';
import { viewsBeside } from './views/beside.js';
import { within } from './views/within.js';

export interface ServedSetup {
  engine: Engine;
  /** The URL of the store. */
  url: string;
  version: string;
  tokens: Tokens;
  /** The most that anybody may do. */
  most: Access;
  /** It is served with TLS. */
  secure: boolean;
  log: (fields: object, text: string) => void;
}

/** The dashboard of a job server, at the root of its HTTP port. */
export interface ServedDashboard {
  /** Settles when what the first request needs is loaded, or after a short while without it. */
  warmUp(): Promise<void>;
  serves(path: string): boolean;
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/** Milliseconds that a server waits at its start for what the first request needs. */
const WARM_UP = 250;

/** With a token people log in; without one everybody who reaches the server may do everything, as with its HTTP interface. */
export function servedDashboard({ engine, url, version, tokens, most, secure, log }: ServedSetup): ServedDashboard {
  const base = '/';
  const logIns = tokens.write === undefined ? undefined : new LogIns(tokens, { base, secure });
  const beside = viewsBeside(url);
  const dashboard = new Dashboard({
    engine,
    version,
    url: redactUrl(url),
    base,
    access: ({ headers }) => atMost(most, logIns ? logIns.accessOf(headers) : 'write'),
    ...(logIns ? { logIns } : {}),
    who: (request) => addressOf(request) ?? 'somebody',
    log,
    views: beside.views,
    actions: beside.actions,
  });
  return {
    // What goes wrong here goes wrong again, and is told, when somebody looks.
    warmUp: () =>
      within(
        WARM_UP,
        dashboard.warmUp().catch(() => {}),
      ),
    serves: (path) => dashboard.serves(path),
    serve: nodeListener((request) => dashboard.handle(request)),
    close: async () => {
      dashboard.close();
      await beside.close();
    },
  };
}

function atMost(most: Access, access: Access | undefined): Access | undefined {
  return access === 'write' ? most : access;
}
