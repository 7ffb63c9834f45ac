import { connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP proxy on loopback that can delay replies, drop them, or cut connections. */
export class Line {
  /** Called with every chunk from the server; false withholds it from the client. */
  onReply: (chunk: Buffer) => boolean | Promise<boolean> = () => true;
  /** True drops all commands of the clients. */
  deaf = false;
  port = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  constructor(private readonly target: number) {
    this.server = createServer((client) => this.join(client));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    const address = this.server.address();
    this.port = typeof address === 'object' && address ? address.port : 0;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => {});
    }
    client.on('data', (chunk) => this.deaf || server.write(chunk)).on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    server.on('data', async (chunk: Buffer) => {
      if (await this.onReply(chunk)) client.write(chunk);
    });
  }
}
