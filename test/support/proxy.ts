import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy on loopback. It can cut connections, delay or drop the bytes of either direction, refuse or ignore new connections, and
 * keep connections of a server that has gone open towards the client.
 */
export class Line {
  /** Called with every chunk from the server; false withholds it from the client. */
  onReply: (chunk: Buffer) => boolean | Promise<boolean> = () => true;
  /** True drops all commands of the clients. */
  deaf = false;
  /** Milliseconds by which every chunk is delayed, in both directions. */
  delay = 0;
  /** What happens to new connections: they reach the server, are reset, or are accepted and get no answer. */
  admits: 'all' | 'none' | 'mute' = 'all';
  /** True keeps the client's side open when the server closes its own. */
  halfOpen = false;
  port = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  constructor(private readonly target: number) {
    this.server = createServer((client) => this.join(client));
  }

  static async to(target: number): Promise<Line> {
    const line = new Line(target);
    await line.listen();
    return line;
  }

  async listen(): Promise<void> {
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    const address = this.server.address();
    this.port = typeof address === 'object' && address ? address.port : 0;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  /** As `cut`, with a reset: the other side gets ECONNRESET. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
    this.sockets.clear();
  }

  /** Nothing passes in either direction, and nobody is told: as if the cable was pulled. */
  partition(): void {
    this.deaf = true;
    this.onReply = () => false;
    this.admits = 'mute';
  }

  /** Replies are lost, commands arrive. */
  swallowReplies(): void {
    this.onReply = () => false;
  }

  /** Everything passes again, on new connections. */
  mend(): void {
    this.deaf = false;
    this.onReply = () => true;
    this.admits = 'all';
    this.delay = 0;
    this.cut();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(client: Socket): void {
    client.on('error', () => {});
    if (this.admits === 'none') {
      client.resetAndDestroy();
      return;
    }
    this.sockets.add(client);
    client.on('close', () => this.sockets.delete(client));
    if (this.admits === 'mute') client.resume();
    else this.connect(client);
  }

  private connect(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    server.on('error', () => {});
    this.sockets.add(server);
    server.on('close', () => {
      this.sockets.delete(server);
      if (!this.halfOpen) client.destroy();
    });
    client.on('close', () => server.destroy());
    client.on('data', (chunk) => {
      if (!this.deaf) this.pass(server, chunk);
    });
    server.on('data', async (chunk: Buffer) => {
      if (await this.onReply(chunk)) this.pass(client, chunk);
    });
  }

  private pass(to: Socket, chunk: Uint8Array): void {
    const write = () => {
      if (!to.destroyed) to.write(chunk);
    };
    if (this.delay > 0) setTimeout(write, this.delay);
    else write();
  }
}
