// Many workers of a job server in one process, on bare HTTP/2: every second connection speaks Lakh, the others crore.v1.
// It prints `open` when all streams are accepted, and for every line on its standard input a report in JSON since the last one.
import { connect } from 'node:http2';
import { createInterface } from 'node:readline';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { call, count, dial, reportOf } from '../../../bench/grpc/wire.mjs';
import { WorkRequestSchema, WorkResponseSchema } from '../../../dist/proto/crore/v1/crore_pb.js';

const { port, connections, streams, first, queues, slowEvery } = JSON.parse(process.argv[2]);
const HEARTBEAT = 15_000;
const LEASE = 60n;
/** Latencies by powers of this base, so that reports of several processes can be added up. */
const BASE = 1.1;
/** A slow reader takes what fits in such a window, and reads it this often. */
const NARROW = 256;
const SLOW = 7_000;

const all = [];
let latencies = {};
let jobs = 0;

function took(text) {
  const at = Number(/at=(\d+)/.exec(text)?.[1]);
  const bucket = Math.ceil(Math.log(Math.max(1, Date.now() - at)) / Math.log(BASE));
  latencies[bucket] = (latencies[bucket] ?? 0) + 1;
}

function received(worker, text) {
  jobs += 1;
  worker.recent += 1;
  worker.total += 1;
  if (!worker.slow) took(text);
}

function framed(request) {
  const bytes = toBinary(WorkRequestSchema, create(WorkRequestSchema, request));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function lakh(worker, stream, queue) {
  count(stream, (buffer, start, end) => {
    received(worker, buffer.toString('latin1', start, end));
    stream.write(reportOf(buffer, start, queue));
  });
}

function croreV1(worker, stream, queue) {
  stream.write(framed({ open: { queues: [queue], lease: { seconds: LEASE } }, credit: 1 }));
  const heartbeat = setInterval(() => stream.write(framed({ heartbeat: true })), HEARTBEAT);
  stream.on('close', () => clearInterval(heartbeat));
  count(stream, (buffer, start, end) => {
    const response = fromBinary(WorkResponseSchema, buffer.subarray(start, end));
    for (const job of response.jobs) {
      received(worker, String(job.payload?.kind.value));
      const settle = [{ token: job.token, outcome: { case: 'done', value: {} } }];
      stream.write(framed({ settle, credit: 1 }));
    }
  });
}

function openConnection(n) {
  const slow = n % slowEvery === 0;
  const session = slow ? connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: NARROW } }) : dial(port);
  session.on('error', () => {});
  const each = Math.round(streams / connections);
  for (let i = 0; i < each; i++) openStream(session, n, i, slow);
}

function openStream(session, n, i, slow) {
  const isLakh = n % 2 === 0;
  const queue = `${isLakh ? 'lakh' : 'crore'}-${(n + i) % queues}`;
  const { stream } = call(session, isLakh ? '/lakh.Lakh/Join' : '/crore.v1.Crore/Work', queue);
  const worker = { slow, recent: 0, total: 0, open: false, ended: false };
  all.push(worker);
  stream.on('response', () => {
    worker.open = true;
  });
  stream.on('close', () => {
    worker.ended = true;
  });
  stream.on('error', () => {});
  if (isLakh) lakh(worker, stream, queue);
  else croreV1(worker, stream, queue);
  if (!slow) return;
  stream.pause();
  setInterval(() => {
    stream.resume();
    setImmediate(() => stream.pause());
  }, SLOW).unref();
}

function report() {
  const readers = all.filter(({ slow }) => !slow);
  const figures = {
    jobs,
    latencies,
    idle: readers.filter(({ recent }) => recent === 0).length,
    starved: readers.filter(({ total }) => total === 0).length,
    ended: all.filter(({ ended }) => ended).length,
  };
  for (const worker of all) worker.recent = 0;
  latencies = {};
  jobs = 0;
  process.stdout.write(`report ${JSON.stringify(figures)}\n`);
}

// A few connections at a time, as a server that starts under load would see them.
for (let n = first; n < first + connections; n++) {
  openConnection(n);
  if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 30));
}
const opening = setInterval(() => {
  if (!all.every(({ open, ended }) => open || ended)) return;
  clearInterval(opening);
  process.stdout.write('open\n');
}, 50);
for await (const _line of createInterface({ input: process.stdin })) report();
process.exit(0);
