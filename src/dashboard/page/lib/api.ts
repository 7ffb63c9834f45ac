/** Calls of the dashboard's server. Addresses are relative to `<base>`. */
import { signal } from '@preact/signals';
import type {
  Action,
  ActionResult,
  ApiError,
  BulkAction,
  BulkProgress,
  SessionView,
  ViewName,
  Views,
} from '../../api.js';
import { href, location, replace } from './router.js';
import { syncClock } from './time.js';

/** Who looks at this; absent until it is known. */
export const session = signal<SessionView | undefined>(undefined);

/** Why somebody may not see anything, where there is no log-in. */
export const refused = signal<string | undefined>(undefined);

export function mayAct(): boolean {
  return session.value?.access === 'write';
}

/** An answer that is no success. Status 0: there was no answer. */
export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = '',
    /** Whether there is a log-in, if somebody is not logged in. */
    readonly logIn?: boolean,
  ) {
    super(message);
  }
}

export async function get<N extends ViewName>(
  view: N,
  parameters: Views[N]['parameters'],
  stop?: AbortSignal,
): Promise<Views[N]['content']> {
  const answer = await call(href(`api/${view}`, parameters), { signal: stop });
  const content = (await answer.json()) as Views[N]['content'];
  syncClock(content.now);
  return content;
}

export async function act(action: Action): Promise<ActionResult> {
  return (await (await post('api/act', action)).json()) as ActionResult;
}

/** Yields how far it has come; aborting the signal stops it on the server too. */
export async function* bulk(action: BulkAction, stop: AbortSignal): AsyncGenerator<BulkProgress> {
  const answer = await post('api/bulk', action, stop);
  for await (const line of lines(answer.body!)) yield JSON.parse(line) as BulkProgress;
}

export async function readSession(): Promise<void> {
  session.value = await get('session', {});
}

export async function logIn(token: string): Promise<void> {
  await call('api/login', request({ token }), false);
}

export async function logOut(): Promise<void> {
  await post('api/logout', {});
  session.value = undefined;
  toLogIn();
}

function post(path: string, body: unknown, stop?: AbortSignal): Promise<Response> {
  return call(path, { ...request(body), signal: stop });
}

function request(body: unknown): RequestInit {
  const headers = { 'content-type': 'application/json', 'x-crore-dashboard': '1' };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

async function call(path: string, init: RequestInit, leave = true): Promise<Response> {
  const answer = await reach(path, init);
  if (answer.ok) return answer;
  const failure = await failureOf(answer);
  if (answer.status === 401 && failure.logIn === false) refused.value = failure.message;
  else if (answer.status === 401 && leave) toLogIn();
  throw failure;
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, credentials: 'same-origin' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiFailure(0, 'The server has not answered');
  }
}

async function failureOf(answer: Response): Promise<ApiFailure> {
  try {
    const { error, code, logIn } = (await answer.json()) as ApiError;
    return new ApiFailure(answer.status, error, code, logIn);
  } catch {
    return new ApiFailure(answer.status, `The server answered with status ${answer.status}`);
  }
}

function toLogIn(): void {
  const { path, query } = location.value;
  if (path !== 'login') replace(href('login', { next: href(path, Object.fromEntries(query)) }));
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const parts = rest.split('\n');
    rest = done ? '' : parts.pop()!;
    yield* parts.filter((line) => line !== '');
    if (done) return;
  }
}
