import type { DescMessage, JsonValue } from '@bufbuild/protobuf';
import type { UniversalServerResponse } from '@connectrpc/connect/protocol';
import { fromPlain, plainText } from './plain-json.js';

/** Wraps the body of a JSON call: what people write becomes what the library reads. */
export async function* plainRequest(message: DescMessage, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    const value = parse(bytes);
    yield value === undefined ? bytes : Buffer.from(JSON.stringify(fromPlain(message, value)));
  }
}

/** The same for the response. An error also names its code, which gRPC clients find in the metadata. */
export async function plainResponse(
  message: DescMessage,
  response: UniversalServerResponse,
): Promise<UniversalServerResponse> {
  if (!response.body || Symbol.asyncIterator in response.body === false) return response;
  const parts: Uint8Array[] = [];
  for await (const part of response.body as AsyncIterable<Uint8Array>) parts.push(part);
  const bytes = Buffer.concat(parts);
  const value = parse(bytes);
  const text = value === undefined ? bytes : Buffer.from(textOf(message, response, value));
  const header = new Headers(response.header);
  if (header.has('content-length')) header.set('content-length', String(text.length));
  return { ...response, header, body: single(text) };
}

function textOf(message: DescMessage, { status, header }: UniversalServerResponse, value: JsonValue): string {
  if (status === 200) return `${plainText(message, value)}\n`;
  const croreCode = header?.get('crore-code');
  return `${JSON.stringify(croreCode ? { ...(value as object), croreCode } : value)}\n`;
}

/** Undefined for what is not JSON: the library says so. */
function parse(bytes: Uint8Array): JsonValue | undefined {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as JsonValue;
  } catch {
    return undefined;
  }
}

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
