import type { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import { act, describeAction } from './actions.js';
import type { Access, ActionResult, ApiError, SessionView, ViewName } from './api.js';
import { bulkTask, runBulk } from './bulk.js';
import { failed, json, refuse, respond } from './http/answers.js';
import type { LogIns } from './http/log-in.js';
import { PageFiles } from './http/page-files.js';
import { foreignRequest } from './http/same-site.js';
import { LiveViews } from './live.js';
import { PAGE } from './views/overview.js';
import { QueueBoard } from './views/queue-board.js';
import { engineViews, parametersOf, type View, type ViewTable } from './views/views.js';

export interface DashboardSetup {
  engine: Engine;
  version: string;
  /** The URL of the store, without secrets. */
  url: string;
  /** The path under which it is mounted, with a slash at both ends. */
  base: string;
  /** What a request may do; undefined if nothing. */
  access: (request: Request) => Access | undefined | Promise<Access | undefined>;
  /** For log-ins with a token; absent where somebody else checks who it is. */
  logIns?: LogIns;
  /** Who sent a request, for the log and the history of jobs. */
  who: (request: Request) => string;
  /** Everything done by hand is logged. */
  log: (fields: object, text: string) => void;
  /** Views beside those of jobs and queues: flows and rings. */
  views?: ViewTable;
  /** Actions beside those on jobs and queues. */
  actions?: Record<string, (asked: Record<string, unknown>) => Promise<ActionResult>>;
}

/** Paths of the page: it decides itself what to show there. */
const PAGES = new Set([
  '',
  'queue',
  'job',
  'dead',
  'workers',
  'schedules',
  'flows',
  'flow',
  'rings',
  'ring',
  'find',
  'login',
]);
/** Queues that are read together before the first request: others wait no longer than for these. */
const WARM_STEP = 10;
/** Bytes of a request. */
const LARGEST = 262_144;

/** The dashboard: the page, its files, and what it asks for. */
export class Dashboard {
  readonly #board: QueueBoard;
  readonly #views: ViewTable;
  readonly #live: LiveViews;
  readonly #files: PageFiles;

  constructor(private readonly setup: DashboardSetup) {
    const { engine, base } = setup;
    this.#board = new QueueBoard(engine);
    this.#views = { ...engineViews(engine, this.#board, setup.views?.flows), ...setup.views };
    this.#live = new LiveViews(() => engine.store.now());
    this.#files = new PageFiles(base);
  }

  /** Whether a path belongs to the dashboard. */
  serves(path: string): boolean {
    if (!path.startsWith(this.setup.base)) return false;
    const place = path.slice(this.setup.base.length);
    return PAGES.has(place) || place.startsWith('assets/') || place.startsWith('api/');
  }

  async handle(request: Request): Promise<Response> {
    try {
      return await this.#answer(request, new URL(request.url));
    } catch (error) {
      // Somebody who goes away in the middle of a request is no news.
      if (!(error instanceof CroreError) && !request.signal.aborted)
        this.setup.log({ err: error }, 'a request of the dashboard failed');
      return failed(error);
    }
  }

  /**
   * Does what the first request would have to wait for: Node loads `Request` with its first use, and the store reads the names and a
   * page of queues for the first time.
   */
  async warmUp(): Promise<void> {
    const request = new Request(`http://localhost${this.setup.base}`);
    await json({ method: request.method }).text();
    const names = await this.#board.names();
    for (let i = 0; i < PAGE; i += WARM_STEP) {
      await this.#board.rows(names.slice(i, Math.min(PAGE, i + WARM_STEP)));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Ends the streams of all open pages. */
  close(): void {
    this.#live.close();
  }

  async #answer(request: Request, url: URL): Promise<Response> {
    const { base } = this.setup;
    if (`${url.pathname}/` === base) return respond(308, null, { location: base });
    if (!url.pathname.startsWith(base)) return refuse(404, 'NOT_FOUND', 'not a path of the dashboard');
    const place = url.pathname.slice(base.length);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!place.startsWith('api/')) {
      if (!isRead) return refuse(405, 'BAD_OPTION', 'pages are read with GET');
      if (PAGES.has(place)) return this.#files.page();
      const file = place.startsWith('assets/') ? this.#files.file(place.slice('assets/'.length), request) : undefined;
      return file ?? refuse(404, 'NOT_FOUND', 'not a path of the dashboard');
    }
    return isRead
      ? this.#look(request, place.slice('api/'.length), url)
      : this.#change(request, place.slice('api/'.length));
  }

  async #look(request: Request, name: string, url: URL): Promise<Response> {
    const access = await this.#access(request);
    if (access === undefined) return this.#notAllowed();
    if (name === 'session') return json(this.#session(access));
    const parameters = parametersOf(url.searchParams);
    if (name !== 'live') {
      const content = await this.#view(name).read(parameters);
      return content === undefined ? refuse(404, 'NOT_FOUND', `there is no such ${name}`) : json(content);
    }
    const { view: followed = '', ...rest } = parameters;
    const stream = this.#live.follow(followed as ViewName, this.#view(followed), rest);
    return respond(200, stream, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
  }

  /** Whatever the application returns: only these two words allow anything. */
  async #access(request: Request): Promise<Access | undefined> {
    const access: unknown = await this.setup.access(request);
    return access === 'read' || access === 'write' ? access : undefined;
  }

  #notAllowed(): Response {
    const logIn = this.setup.logIns !== undefined;
    const error = logIn ? 'Log in first.' : 'You have no access to this dashboard.';
    return json({ error, code: 'NOT_ALLOWED', logIn } satisfies ApiError, 401);
  }

  #view(name: string): View {
    const view = Object.hasOwn(this.#views, name) ? this.#views[name as ViewName] : undefined;
    if (!view) throw new CroreError('NOT_FOUND', `there is no view '${name.slice(0, 40)}'`);
    return view;
  }

  #session(access: Access): SessionView {
    const { engine, version, url, logIns } = this.setup;
    const store = url.split(':')[0]!;
    return { access, version, store, url, loggedIn: logIns !== undefined, now: engine.store.now() };
  }

  async #change(request: Request, name: string): Promise<Response> {
    if (request.method !== 'POST') return refuse(405, 'BAD_OPTION', 'changes are made with POST');
    const foreign = foreignRequest(request);
    if (foreign !== undefined) return refuse(403, 'BAD_OPTION', foreign);
    if (name === 'login') return this.#logIn(request);
    const access = await this.#access(request);
    if (access === undefined) return this.#notAllowed();
    if (name === 'logout') return respond(204, null, this.#cookie(this.setup.logIns?.logOut()));
    if (name !== 'act' && name !== 'bulk') return refuse(404, 'NOT_FOUND', 'not a path of the dashboard');
    const asked = await bodyOf(request);
    const counts = name === 'bulk' && (asked as { action?: unknown }).action === 'count';
    if (access !== 'write' && !counts) return refuse(403, 'NOT_ALLOWED', 'you may look, but not change anything');
    return name === 'act' ? this.#act(request, asked) : this.#bulk(request, asked, counts);
  }

  async #logIn(request: Request): Promise<Response> {
    const { logIns } = this.setup;
    if (!logIns) return refuse(404, 'NOT_FOUND', 'This dashboard has no log-in.');
    const { token } = (await bodyOf(request)) as { token?: unknown };
    const who = this.setup.who(request);
    const cookie = typeof token === 'string' ? logIns.logIn(token, who) : undefined;
    if (cookie === 'wait')
      return refuse(429, 'NOT_ALLOWED', 'too many wrong tokens from your address: try again in a minute');
    this.setup.log({ by: who }, cookie ? 'log-in to the dashboard' : 'log-in with a wrong token');
    return cookie === undefined ? refuse(401, 'NOT_ALLOWED', 'wrong token') : respond(204, null, this.#cookie(cookie));
  }

  #cookie(cookie: string | undefined): Record<string, string> {
    return cookie === undefined ? {} : { 'set-cookie': cookie };
  }

  async #act(request: Request, asked: Record<string, unknown>): Promise<Response> {
    const { engine, actions = {} } = this.setup;
    const by = this.#by(request);
    const own =
      typeof asked.action === 'string' && Object.hasOwn(actions, asked.action) ? actions[asked.action] : undefined;
    const result = await (own ? own(asked) : act(engine, asked, by));
    this.setup.log({ ...describeAction(asked), by, changed: result.changed }, 'done by hand in the dashboard');
    return json(result);
  }

  async #bulk(request: Request, asked: Record<string, unknown>, counts: boolean): Promise<Response> {
    const by = this.#by(request);
    const task = await bulkTask(this.setup.engine, asked, by);
    const done = (changed: number) => {
      if (!counts) this.setup.log({ ...describeAction(asked), by, changed }, 'done by hand in the dashboard');
    };
    return respond(200, runBulk(this.setup.engine, task, done), { 'content-type': 'application/x-ndjson' });
  }

  #by(request: Request): string {
    return `${this.setup.who(request)} in the dashboard`;
  }
}

/** The JSON of a request, which must be an object. */
async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  const text = await textOf(request);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CroreError('BAD_OPTION', `the request is not JSON: ${(error as Error).message}`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new CroreError('BAD_OPTION', 'the request must be a JSON object');
  return value as Record<string, unknown>;
}

/** Refuses a large request before it is read as a whole. */
async function textOf(request: Request): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += part.length;
    if (size > LARGEST) throw new CroreError('PAYLOAD_TOO_LARGE', `the request is over the limit of ${LARGEST} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}
