// A load generator for gRPC streams with very little overhead: bare HTTP/2, prebuilt messages, many per write.
import { connect } from 'node:http2';
import { JobWriter } from '../../dist/grpc/lakh/writer.js';

const ARGS = ['user@example.org', '4711'];

/** `count` framed jobs as buffers of at most `pack` messages. */
export function framedJobs(count, name, { reservation = 0, pack = 200, id = (i) => `job-${i}` } = {}) {
  const buffers = [];
  const writer = new JobWriter();
  for (let i = 0; i < count; i++) {
    writer.add(id(i), name, ARGS, { execution: { kind: 'immediate' }, reservation });
    if ((i + 1) % pack === 0) buffers.push(writer.take());
  }
  if (writer.size > 0) buffers.push(writer.take());
  return buffers;
}

export function dial(port) {
  const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 4 * 1024 * 1024 } });
  session.on('error', () => {});
  session.on('connect', () => session.setLocalWindowSize(16 * 1024 * 1024));
  return session;
}

export function call(session, path, names) {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    job_names: names,
  });
  const status = new Promise((resolve, reject) => {
    let trailers = {};
    stream.on('response', (headers) => {
      trailers = headers;
    });
    stream.on('trailers', (all) => {
      trailers = all;
    });
    stream.on('error', reject);
    stream.on('close', () => resolve(trailers['grpc-status']));
  });
  status.catch(() => {});
  return { stream, status };
}

/** Writes all buffers, as fast as the reader accepts them. */
export async function pour(stream, buffers) {
  for (const buffer of buffers) {
    if (!stream.write(buffer)) await new Promise((resolve) => stream.once('drain', resolve));
  }
}

/** Counts the messages that arrive and passes each to `take(buffer, start, end)`. */
export function count(stream, take = () => {}) {
  const state = { seen: 0, rest: Buffer.alloc(0) };
  stream.on('data', (chunk) => {
    const data = state.rest.length > 0 ? Buffer.concat([state.rest, chunk]) : chunk;
    let at = 0;
    while (data.length - at >= 5) {
      const end = at + 5 + data.readUInt32BE(at + 1);
      if (end > data.length) break;
      take(data, at + 5, end);
      state.seen += 1;
      at = end;
    }
    state.rest = data.subarray(at);
  });
  return state;
}

/** A framed JobResult for each framed job of a buffer: the id field is copied unchanged. */
export function reportOf(buffer, start, name) {
  const idEnd = start + 2 + buffer[start + 1];
  const id = buffer.subarray(start, idEnd);
  const nameBytes = Buffer.from(name);
  const length = id.length + 2 + nameBytes.length + 2;
  const report = Buffer.allocUnsafe(5 + length);
  report[0] = 0;
  report.writeUInt32BE(length, 1);
  id.copy(report, 5);
  let at = 5 + id.length;
  report[at++] = 0x12;
  report[at++] = nameBytes.length;
  nameBytes.copy(report, at);
  at += nameBytes.length;
  report[at++] = 0x18;
  report[at] = 1;
  return report;
}
