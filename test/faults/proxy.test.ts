import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Line } from '../support/proxy.js';
import { until } from '../support/wait.js';

describe('the proxy', () => {
  let echo: Server;
  let served: Socket[];
  let heard: string;
  let line: Line;
  let clients: Socket[];

  beforeEach(async () => {
    served = [];
    clients = [];
    heard = '';
    echo = createServer((socket) => {
      served.push(socket);
      socket
        .on('error', () => {})
        .on('data', (chunk) => {
          heard += chunk;
          socket.write(chunk);
        });
    }).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    line = await Line.to((echo.address() as { port: number }).port);
  });
  afterEach(() => {
    for (const socket of [...clients, ...served]) socket.destroy();
    line.close();
    echo.close();
  });

  async function dial(): Promise<{ socket: Socket; text: () => string }> {
    const socket = connect(line.port, '127.0.0.1');
    clients.push(socket);
    let text = '';
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        text += chunk;
      });
    await until('it to be connected or refused', () => !socket.connecting);
    return { socket, text: () => text };
  }

  it('passes bytes on, later if it is told to', async () => {
    const { socket, text } = await dial();
    socket.write('a');
    await until('an answer', () => text() === 'a');
    line.delay = 60;
    const since = performance.now();
    socket.write('b');
    await until('a late answer', () => text() === 'ab');
    expect(performance.now() - since).toBeGreaterThan(100);
  });

  it('swallows replies while commands arrive, or drops everything', async () => {
    const { socket, text } = await dial();
    line.swallowReplies();
    socket.write('a');
    await until('the command to arrive', () => heard === 'a');
    line.partition();
    const other = await dial();
    socket.write('b');
    other.socket.write('c');
    line.mend();
    await until('both connections to be cut', () => socket.destroyed && other.socket.destroyed);
    expect([heard, text(), other.text()]).toEqual(['a', '', '']);
    const after = await dial();
    after.socket.write('d');
    await until('an answer', () => after.text() === 'd');
  });

  it('refuses new connections, and keeps one open whose server has gone', async () => {
    const { socket } = await dial();
    line.halfOpen = true;
    await until('the server to have it', () => served.length === 1);
    served[0]!.destroy();
    line.admits = 'none';
    const refused = await dial();
    await until('it to be reset', () => refused.socket.destroyed);
    expect(socket.destroyed).toBe(false);
  });
});
