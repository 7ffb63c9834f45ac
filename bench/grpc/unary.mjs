// Single calls, one after the other on one connection, beside the same method on grpc-js.
import { create, toBinary } from '@bufbuild/protobuf';
import { AddRequestSchema } from '../../dist/proto/crore/v1/crore_pb.js';
import { median, startServer } from './server-process.mjs';
import { call, dial } from './wire.mjs';

const JOB = { id: '', payload: { kind: { case: 'json', value: '["user@example.org","4711"]' } } };

function framed(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Median latency and server CPU of an `Add` with one job, in microseconds, after as many calls to warm up. */
export async function unary(kind, calls) {
  const server = await startServer(kind, 0);
  const session = dial(server.port);
  const request = framed(toBinary(AddRequestSchema, create(AddRequestSchema, { queue: 'bench', jobs: [JOB] })));
  await callMany(session, request, calls);
  const before = await server.ask();
  const latencies = await callMany(session, request, calls);
  const after = await server.ask();
  session.destroy();
  await server.stop();
  return { latency: median(latencies), cpu: (after.cpu - before.cpu) / calls };
}

async function callMany(session, request, calls) {
  const latencies = [];
  for (let i = 0; i < calls; i++) {
    const startedAt = performance.now();
    const { stream, status } = call(session, '/crore.v1.Crore/Add', 'bench');
    stream.resume();
    stream.end(request);
    const code = await status;
    if (code !== '0') throw new Error(`the call ended with status ${code}`);
    latencies.push((performance.now() - startedAt) * 1_000);
  }
  return latencies;
}
