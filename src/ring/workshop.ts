import { spawn } from 'node:child_process';
import type { Options } from './args.js';
import { Child } from './child.js';
import { now } from './clock.js';
import { Guard } from './guard.js';
import type { Lease } from './keeper.js';
import { type Log, showItem } from './log.js';
import { type Plan, planChild } from './plan.js';
import { randomToken } from './random.js';
import { Work } from './work.js';

/** Everything about starting children, apart from the walk so that a walk without a find does not load it. */
export class Workshop {
  private readonly mark = randomToken().toString('hex');
  private readonly guard: Guard;

  constructor(
    private readonly options: Options,
    private readonly log: Log,
  ) {
    this.guard = new Guard(spawn, this.mark, log);
  }

  /** What to start for the item, or why it cannot be given to any process. */
  plan(item: Buffer): Plan | string {
    return planChild(item, this.options, this.mark);
  }

  start(plan: Plan, lease: Lease): Work {
    const { graceMs, timeoutMs, command } = this.options;
    const shown = showItem(lease.item);
    const started = now();
    const work = new Work(lease, new Child(spawn, plan, this.guard), started, graceMs);
    const { pid } = work.child;
    if (pid) this.log(`${shown}: ${command[0]} started, pid ${pid}`);
    work.limit(timeoutMs, () => this.log(`${shown}: timeout, ending the child`));
    return work;
  }

  close(): void {
    this.guard.close();
  }
}
