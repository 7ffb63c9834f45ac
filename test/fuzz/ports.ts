import { connect } from 'node:http2';
import { fromJson, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { Crore } from '../../dist/proto/crore/v1/crore_pb.js';
import type { ServeProcess } from '../grpc/support/process.js';
import { message } from '../grpc/support/wire.js';
import type { Target } from './fuzzing.js';
import { jsonOf } from './messages.js';

const unary = Crore.methods.filter(({ methodKind }) => methodKind === 'unary');
const call = fc.constantFrom(...unary).chain((method) => jsonOf(method.input).map((body) => ({ method, body })));
/** How the library that decodes messages says that one cannot be decoded: it has no better status for it. */
const MALFORMED = 'parse binary';
/** A call that takes longer hangs. */
const LONGEST = 10_000;

/** Whatever is sent to a server, it answers with a status that blames the caller, or does what was asked. */
export function portsOf(server: ServeProcess): Target[] {
  const isAlive = () => {
    if (!server.running) throw new Error(`the server has ended: ${server.errors.slice(-2_000)}`);
  };
  const post = async (path: string, body: string, headers: Record<string, string>) => {
    const signal = AbortSignal.timeout(LONGEST);
    const answer = await fetch(`${server.http}${path}`, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    if (answer.status === 500 && !text.includes(MALFORMED)) throw new Error(`${path}: 500 ${text.slice(0, 300)}`);
    isAlive();
  };
  const json = { 'content-type': 'application/json' };
  return [
    {
      name: 'http json',
      input: call,
      feed: ({ method, body }) => post(`/crore.v1.Crore/${method.name}`, JSON.stringify(body), json),
    } satisfies Target<{ method: (typeof unary)[number]; body: object }> as Target,
    {
      name: 'http bodies and headers',
      input: fc.record({
        path: fc.constantFrom('/crore.v1.Crore/Add', '/crore.v1.Crore/List', '/metrics', '/readyz', '/', '/queues'),
        body: fc.string({ maxLength: 200, unit: 'binary' }),
        type: fc.constantFrom(
          'application/json',
          'application/proto',
          'application/connect+json',
          'text/plain',
          '',
          'a/b; c',
        ),
        more: fc.dictionary(
          fc.constantFrom(
            'x-a',
            'connect-timeout-ms',
            'connect-protocol-version',
            'accept',
            'authorization',
            'origin',
            'cookie',
          ),
          fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, '?')),
          { maxKeys: 3 },
        ),
      }),
      feed: ({ path, body, type, more }) => post(path, body, { ...more, 'content-type': type }),
    } satisfies Target<{ path: string; body: string; type: string; more: Record<string, string> }> as Target,
    {
      name: 'grpc messages',
      input: fc.tuple(
        call,
        fc.option(fc.uint8Array({ maxLength: 60 })),
        fc.array(fc.tuple(fc.nat(500), fc.nat(255)), { maxLength: 3 }),
      ),
      feed: async ([{ method, body }, junk, changes]) => {
        const bytes = junk ?? encode(method.input, body);
        for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
        const { status, text } = await invoke(server.address, `/crore.v1.Crore/${method.name}`, message(bytes));
        isAlive();
        if (status === undefined || status === '2' || (status === '13' && !text.includes(MALFORMED)))
          throw new Error(`${method.name}: status ${status} ${text}`);
      },
    } satisfies Target<
      [{ method: (typeof unary)[number]; body: object }, Uint8Array | null, [number, number][]]
    > as Target,
  ];
}

function encode(schema: (typeof unary)[number]['input'], body: object): Uint8Array {
  try {
    return toBinary(schema, fromJson(schema, body as never, { ignoreUnknownFields: true }));
  } catch {
    return new TextEncoder().encode(JSON.stringify(body)); // not of the right shape
  }
}

function invoke(address: string, path: string, body: Buffer): Promise<{ status: string | undefined; text: string }> {
  const session = connect(`http://${address}`);
  session.on('error', () => {});
  return new Promise((resolve) => {
    let status: string | undefined;
    let text = '';
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const hear = (headers: Record<string, unknown>) => {
      if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status']);
      text = decodeURIComponent(String(headers['grpc-message'] ?? text));
    };
    stream
      .on('response', hear)
      .on('trailers', hear)
      .on('error', () => {});
    stream.setTimeout(LONGEST, () => stream.close());
    stream.on('close', () => {
      session.destroy();
      resolve({ status, text });
    });
    stream.resume().end(body);
  });
}
