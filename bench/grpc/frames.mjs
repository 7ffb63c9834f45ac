// A client stream as real clients send it, one message per DATA frame, written by hand at full speed: the frames are
// built before the clock starts, so that only the server is measured.
import { connect } from 'node:net';
import { JobWriter } from '../../dist/grpc/lakh/writer.js';

const [DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [0, 1, 4, 6, 7, 8];
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(type, flags, stream, payload) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function literal(name, value) {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

function headers(path) {
  const text = (index, value) => Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)]);
  return Buffer.concat([
    Buffer.from([0x83, 0x86]), // POST, http
    text(0x04, path),
    text(0x01, 'localhost'),
    literal('content-type', 'application/grpc'),
    literal('te', 'trailers'),
    literal('job_names', 'bench'),
  ]);
}

/** Sends `count` jobs on one stream; resolves when the server has ended it. */
export function sendJobs(port, count) {
  const writer = new JobWriter();
  const frames = Array.from({ length: count }, (_x, i) => {
    writer.add(`job-${i}`, 'bench', ['user@example.org', '4711'], { execution: { kind: 'immediate' }, reservation: 0 });
    return frame(DATA, 0, 1, writer.take());
  });
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const window = { connection: 65_535, stream: 65_535, initial: 65_535 };
    let next = 0;
    let ended = false;
    let rest = Buffer.alloc(0);
    const fill = () => {
      const ready = [];
      let room = Math.min(window.connection, window.stream);
      while (next < frames.length && frames[next].length - 9 <= room) {
        const size = frames[next].length - 9;
        room -= size;
        window.connection -= size;
        window.stream -= size;
        ready.push(frames[next++]);
      }
      if (next === frames.length && !ended) {
        ended = true;
        ready.push(frame(DATA, END_STREAM, 1, Buffer.alloc(0)));
      }
      if (ready.length > 0) socket.write(Buffer.concat(ready));
    };
    const hear = (type, flags, stream, payload) => {
      if (type === SETTINGS && (flags & 1) === 0) {
        for (let i = 0; i + 6 <= payload.length; i += 6) {
          if (payload.readUInt16BE(i) !== 4) continue;
          window.stream += payload.readUInt32BE(i + 2) - window.initial;
          window.initial = payload.readUInt32BE(i + 2);
        }
        socket.write(frame(SETTINGS, 1, 0, Buffer.alloc(0)));
      } else if (type === WINDOW_UPDATE) {
        window[stream === 0 ? 'connection' : 'stream'] += payload.readUInt32BE(0) & 0x7fffffff;
      } else if (type === PING && (flags & 1) === 0) {
        socket.write(frame(PING, 1, 0, payload));
      } else if (type === GOAWAY) {
        reject(new Error('the server said goodbye'));
      } else if (type === HEADERS && (flags & END_STREAM) !== 0) {
        socket.destroy();
        if (ended) resolve();
        else reject(new Error('the stream was refused'));
      }
    };
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 9) {
        const size = rest.readUIntBE(0, 3);
        if (rest.length < 9 + size) break;
        hear(rest[3], rest[4], rest.readUInt32BE(5) & 0x7fffffff, rest.subarray(9, 9 + size));
        rest = rest.subarray(9 + size);
      }
      fill();
    });
    socket.on('error', reject);
    socket.write(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
    socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
    socket.write(frame(HEADERS, END_HEADERS, 1, headers('/lakh.Lakh/Work')));
    fill();
  });
}
