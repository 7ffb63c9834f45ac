import { spawn } from 'node:child_process';
import { Child } from '../process/child.js';
import { type ChildCommand, childCommand } from '../process/child-command.js';
import { now } from '../process/clock.js';
import { type Log, showItem } from '../process/log.js';
import { OrphanGuard } from '../process/orphan-guard.js';
import { randomToken } from '../process/random.js';
import type { Options } from './args.js';
import type { HeldLock } from './lock-refresher.js';
import { RunningChild } from './running-child.js';

/** Starts children. Separate from the runner, so that a run that finds nothing does not load it. */
export class ChildLauncher {
  private readonly mark = randomToken().toString('hex');
  private readonly guard: OrphanGuard;

  constructor(
    private readonly options: Options,
    private readonly log: Log,
  ) {
    this.guard = new OrphanGuard(spawn, this.mark, log);
  }

  /** The command for the item, or why no process can receive it. */
  plan(item: Buffer): ChildCommand | string {
    return childCommand(item, this.options, this.mark);
  }

  start(plan: ChildCommand, lease: HeldLock): RunningChild {
    const { graceMs, timeoutMs, command } = this.options;
    const shown = showItem(lease.item);
    const started = now();
    const work = new RunningChild(lease, new Child(spawn, plan, this.guard), started, graceMs);
    const { pid } = work.child;
    if (pid) this.log(`${shown}: ${command[0]} started, pid ${pid}`);
    work.limit(timeoutMs, () => this.log(`${shown}: timeout, ending the child`));
    return work;
  }

  close(): void {
    this.guard.close();
  }
}
