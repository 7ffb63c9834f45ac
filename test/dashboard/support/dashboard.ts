import { servedDashboard } from '../../../dist/dashboard/served.js';
import type { Engine } from '../../../dist/engine/engine.js';
import type { Tokens } from '../../../dist/grpc/auth.js';
import { type Crore, open } from '../../../dist/index.js';
import { startServer, type TestServer } from '../../grpc/support/server.js';

export interface TestDashboard extends TestServer {
  /** A connection of its own to the same store. */
  crore: Crore;
  get<T = Record<string, never>>(path: string, headers?: Record<string, string>): Promise<T>;
  /** The status and the error of an answer. */
  refusal(path: string, init?: RequestInit): Promise<{ status: number; error: string }>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

export interface DashboardOptions {
  tokens?: Tokens;
  most?: 'read' | 'write';
  timeout?: number;
}

/** A server in this process with a dashboard, on a store that others can open as well. */
export async function startDashboard(url: string, options: DashboardOptions = {}): Promise<TestDashboard> {
  const { tokens = {}, most = 'write', ...rest } = options;
  const lines: { fields: object; text: string }[] = [];
  const log = (fields: object, text: string) => void lines.push({ fields, text });
  const dashboard = (engine: Engine) =>
    servedDashboard({ engine, url, version: '0.0.0-test', tokens, most, secure: false, log });
  const server = await startServer({ url, tokens, dashboard, ...rest });
  const crore = await open(url, { onError: () => {}, logger: false });
  const at = (path: string) => `${server.http}/${path}`;
  return {
    ...server,
    crore,
    get: async (path, headers = {}) => (await fetch(at(path), { headers })).json() as never,
    refusal: async (path, init) => {
      const answer = await fetch(at(path), init);
      const text = await answer.text();
      return {
        status: answer.status,
        error: text.startsWith('{') ? (JSON.parse(text) as { error: string }).error : text,
      };
    },
    post: (path, body, headers = {}) =>
      fetch(at(path), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-crore-dashboard': '1', ...headers },
        body: JSON.stringify(body),
      }),
    logs: lines.map(({ fields, text }) => ({ level: 'info', fields, text })),
    close: async () => {
      await crore.close();
      await server.close();
    },
    get lines() {
      return lines;
    },
  } as TestDashboard;
}

/** The messages of a live view, until `enough` says so. */
export async function follow(
  address: string,
  enough: (messages: { event: string; data: unknown }[]) => boolean,
  within = 20_000,
): Promise<{ event: string; data: unknown }[]> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new Error('the live view did not say what was expected')), within);
  const messages: { event: string; data: unknown }[] = [];
  const answer = await fetch(address, { signal: stop.signal });
  let rest = '';
  for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + part).split('\n\n');
    rest = parts.pop()!;
    for (const one of parts) {
      const match = /^event: (\w+)\ndata: (.*)\nretry: \d+$/s.exec(one);
      if (match) messages.push({ event: match[1]!, data: JSON.parse(match[2]!) });
    }
    if (enough(messages)) break;
  }
  clearTimeout(timer);
  stop.abort();
  return messages;
}
