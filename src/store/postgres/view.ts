import { Handover } from '../handover.js';
import type { Arg } from './connection/arguments.js';
import type { Answer, PostgresClient, Row } from './connection/client.js';
import { CONCERNS_OTHERS, codeOf } from './connection/failure.js';
import type { Signals } from './connection/signals.js';

/** What the parts of the store share. */
export class View {
  /** Of jobs that are added to workers of this process that wait for them. */
  readonly handover?: Handover<readonly Arg[], Row[]>;

  constructor(
    readonly client: PostgresClient,
    readonly signals: Signals,
    /** The server's clock minus ours. */
    private readonly skew: number,
    private readonly clock?: () => number,
    /** A pooler keeps our connections when the server crashes: only without one do we notice that what was not on the disk yet is lost. */
    pooled = false,
  ) {
    if (!pooled) this.handover = new Handover();
  }

  now(): number {
    return this.clock ? this.clock() : Date.now() + this.skew;
  }

  /** The first argument of functions: the time in tests, else null for that of the server. */
  time(): number | null {
    return this.clock ? this.clock() : null;
  }

  /**
   * Calls a function that may find that it concerns other queues, and then has to lock all of them. Its second argument says so. `again`: the other
   * arguments if it is repeated, false if it must not be.
   */
  async related(
    name: string,
    args: readonly Arg[],
    again: (() => readonly Arg[]) | false = () => args,
  ): Promise<Answer> {
    const run = (cross: boolean) => {
      const whole = (rest: readonly Arg[]) => [this.time(), cross, ...rest];
      return this.client.run(name, whole(args), again && (() => whole(again())));
    };
    try {
      return await run(false);
    } catch (error) {
      if (codeOf(error) !== CONCERNS_OTHERS) throw error;
      return run(true);
    }
  }
}
