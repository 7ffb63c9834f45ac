/** The subset of RESP2 that a ring uses: sends commands as arrays of byte strings, and parses the five reply types. */
export type Reply = Buffer | number | null | ServerError | Reply[];

/** An error reply of the server; a value instead of an exception, so that one bad reply does not abort a pipeline. */
export class ServerError {
  constructor(readonly message: string) {}

  /** The upper-case word at the start: WRONGTYPE, NOAUTH, ERR … */
  get kind(): string {
    return /^[A-Z]+/.exec(this.message)?.[0] ?? '';
  }
}

const END = Buffer.from('\r\n');

/** Collects adjacent strings and encodes them at once: every start has to wait for its first command. */
export function encode(args: readonly (string | Buffer)[]): Buffer {
  const parts: Buffer[] = [];
  let text = `*${args.length}\r\n`;
  for (const arg of args) {
    if (typeof arg === 'string') {
      text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
      continue;
    }
    parts.push(Buffer.from(`${text}$${arg.length}\r\n`), arg);
    text = '\r\n';
  }
  parts.push(Buffer.from(text));
  return Buffer.concat(parts);
}

const MORE = Symbol('more bytes needed');

/** Takes chunks as they arrive and returns every complete reply. An incomplete reply waits for the next chunk. */
export class Decoder {
  private buffer: Buffer = Buffer.alloc(0);
  private at = 0;

  push(chunk: Buffer): Reply[] {
    this.buffer = this.buffer.length === 0 ? chunk : Buffer.concat([this.buffer, chunk]);
    const replies: Reply[] = [];
    for (;;) {
      this.at = 0;
      const reply = this.read();
      if (reply === MORE) return replies;
      replies.push(reply);
      this.buffer = this.buffer.subarray(this.at);
    }
  }

  private read(): Reply | typeof MORE {
    const end = this.buffer.indexOf(END, this.at);
    if (end < 0) return MORE;
    const type = String.fromCharCode(this.buffer[this.at]!);
    const line = this.buffer.subarray(this.at + 1, end);
    this.at = end + END.length;
    switch (type) {
      case '+':
        return line;
      case '-':
        return new ServerError(line.toString());
      case ':':
        return Number(line.toString());
      case '$':
        return this.readBytes(Number(line.toString()));
      case '*':
        return this.readArray(Number(line.toString()));
      default:
        throw new Error(`not a Redis reply: ${JSON.stringify(`${type}${line.toString('latin1').slice(0, 40)}`)}`);
    }
  }

  private readBytes(length: number): Reply | typeof MORE {
    if (length < 0) return null;
    const end = this.at + length;
    if (this.buffer.length < end + END.length) return MORE;
    const bytes = this.buffer.subarray(this.at, end);
    this.at = end + END.length;
    return bytes;
  }

  private readArray(length: number): Reply | typeof MORE {
    if (length < 0) return null;
    const items: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const item = this.read();
      if (item === MORE) return MORE;
      items.push(item);
    }
    return items;
  }
}
