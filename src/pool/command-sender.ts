import type { Channel } from './channel.js';
import type { HostCommand } from './messages.js';

/** Sends commands to a process or thread: what comes together is one message. */
export class CommandSender {
  #commands: HostCommand[] = [];
  #isSoon = false;
  #isLater = false;

  constructor(
    private readonly channel: Channel,
    /** Called with the number of a call that cannot be serialized. */
    private readonly refused: (call: number, error: unknown) => void,
  ) {}

  /** `later`: at the end of this turn of the event loop, because nothing waits for it. */
  add(command: HostCommand, later = false): void {
    this.#commands.push(command);
    if (later) {
      if (!this.#isLater) setImmediate(() => this.#flush());
      this.#isLater = true;
    } else {
      if (!this.#isSoon) queueMicrotask(() => this.#flush());
      this.#isSoon = true;
    }
  }

  #flush(): void {
    this.#isSoon = false;
    this.#isLater = false;
    if (this.#commands.length === 0) return;
    const commands = this.#commands;
    this.#commands = [];
    try {
      this.channel.send(commands);
    } catch {
      for (const command of commands) this.#sendAlone(command);
    }
  }

  #sendAlone(command: HostCommand): void {
    try {
      this.channel.send([command]);
    } catch (error) {
      if ('run' in command) this.refused(command.run, error);
    }
  }
}
