import type { Socket } from 'node:net';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const WORDS =
  'This port speaks gRPC, which is HTTP/2. HTTP/1.1 and JSON are served on the http address of this server.\n';
const ANSWER = [
  'HTTP/1.1 400 Bad Request',
  'content-type: text/plain; charset=utf-8',
  `content-length: ${WORDS.length}`,
  'connection: close',
  '',
  WORDS,
].join('\r\n');
/** How long a client that does not speak HTTP/2 may take to read the reply. */
const LINGER = 1_000;

export type Greeting = 'http2' | 'http1' | 'other' | 'late';

/**
 * Reads the first bytes of a connection without consuming them. A client that speaks HTTP/1.1 gets a reply saying so; a client
 * that sends anything else, or not enough within `ms`, is cut off.
 */
export function expectPreface(socket: Socket, ms: number, done: (greeting: Greeting) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const end = (greeting: Greeting) => {
    clearTimeout(timer);
    socket.off('readable', look);
    socket.off('close', gone);
    if (greeting === 'http2') socket.unshift(seen);
    else if (greeting === 'http1') answer(socket);
    else socket.destroy();
    done(greeting);
  };
  const gone = () => end('late');
  const look = () => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    if (PREFACE.compare(seen, 0, length, 0, length) !== 0) end(isHttp1(seen) ? 'http1' : 'other');
    else if (length === PREFACE.length) end('http2');
  };
  const timer = setTimeout(() => end('late'), ms).unref();
  socket.on('readable', look);
  socket.once('close', gone);
}

function isHttp1(bytes: Buffer): boolean {
  return /^[A-Z]{3,10} [\x21-\x7e]/.test(bytes.toString('latin1', 0, 64));
}

function answer(socket: Socket): void {
  socket.resume();
  socket.end(ANSWER);
  setTimeout(() => socket.destroy(), LINGER).unref();
}
