// Server CPU per message of the Lakh protocol, beside a bare grpc-js stream of the same messages.
import { once } from 'node:events';
import { sendJobs } from './frames.mjs';
import { startServer, until } from './server-process.mjs';
import { call, count, dial } from './wire.mjs';

/** In microseconds, for a stream to the server, after `warmUps` such streams. */
export async function upstream(kind, messages, warmUps) {
  const server = await startServer(kind, 0);
  for (let i = 0; i < warmUps; i++) await sendJobs(server.port, messages);
  const before = await server.ask();
  await sendJobs(server.port, messages);
  const after = await server.ask();
  await server.stop();
  return (after.cpu - before.cpu) / messages;
}

/** The same for a stream to the client. The whole last stream counts, because a server may be far ahead of its reader. */
export async function downstream(kind, messages, warmUps) {
  const server = await startServer(kind, messages);
  const session = dial(server.port);
  for (let i = 0; i < warmUps; i++) await receiveJobs(session, messages);
  const before = await server.ask();
  await receiveJobs(session, messages);
  const after = await server.ask();
  session.destroy();
  await server.stop();
  return (after.cpu - before.cpu) / messages;
}

async function receiveJobs(session, messages) {
  const { stream } = call(session, '/lakh.Lakh/Join', 'bench');
  const state = count(stream);
  await until(() => state.seen >= messages);
  stream.end();
  await once(stream, 'close');
}
