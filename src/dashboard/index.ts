import { type Crore, connectionOf } from '../crore.js';
import { checkOneOf, checkOptions } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';
import { version } from '../version.js';
import type { Access } from './api.js';
import { Dashboard } from './handler.js';
import type { FetchHandler } from './http/node-listener.js';
import { viewsBeside } from './views/beside.js';

export type { Access } from './api.js';
export { type FetchHandler, nodeListener } from './http/node-listener.js';

export interface DashboardOptions {
  /** The path under which the dashboard is mounted, such as `/jobs`; default `/`. */
  base?: string;
  /**
   * What a request may do: `write` everything, `read` look only, undefined nothing. There is no default, because whoever reaches the
   * dashboard may do it: give a function that asks your application who sent the request, unless something in front of it does.
   */
  access: Access | ((request: Request) => Access | undefined | Promise<Access | undefined>);
  /** Who sent a request, for the log and the history of jobs; default `somebody`. */
  who?: (request: Request) => string;
  /** Gets a line for everything that is done by hand; default none. */
  logger?: { info(fields: object, text: string): void };
}

/** A fetch handler. `close` ends the streams of open pages and the connections that the dashboard has opened for flows and rings. */
export type MountedDashboard = FetchHandler & { close(): Promise<void> };

const KNOWN = ['base', 'access', 'who', 'logger'] as const;

/** The dashboard of a store as a fetch handler, for any server or framework; `nodeListener` makes a Node listener of it. */
export function dashboard(crore: Crore, options: DashboardOptions): MountedDashboard {
  checkOptions(options, KNOWN, 'dashboard');
  const { access, who = () => 'somebody', logger } = options;
  const { engine, url } = connectionOf(crore);
  const beside = viewsBeside(url);
  const mounted = new Dashboard({
    engine,
    version: version(),
    url: redactUrl(url),
    base: baseOf(options.base),
    access: typeof access === 'function' ? access : fixed(access),
    who,
    log: (fields, text) => logger?.info(fields, text),
    views: beside.views,
    actions: beside.actions,
  });
  const close = async () => {
    mounted.close();
    await beside.close();
  };
  return Object.assign((request: Request) => mounted.handle(request), { close });
}

function fixed(access: unknown): () => Access {
  const known = checkOneOf(access, 'dashboard: access', ['read', 'write']);
  return () => known;
}

/** With a slash at both ends. */
function baseOf(base: unknown = '/'): string {
  if (typeof base !== 'string' || !/^\/[\w\-./~]*$/.test(base) || base.includes('//'))
    throw new CroreError('BAD_OPTION', "dashboard: base must be a path such as '/jobs'");
  return base.endsWith('/') ? base : `${base}/`;
}
