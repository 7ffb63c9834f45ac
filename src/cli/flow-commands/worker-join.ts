import { hostname } from 'node:os';
import type { Command } from 'commander';
import { FlowWorker } from '../../flow/executors/remote-worker.js';
import { parseRenewal } from '../../flow/executors/renewal.js';
import { milliseconds } from '../../job/duration.js';
import { action, hideFromProcessList, storeUrl } from '../action.js';
import { whole } from '../option-values.js';

interface Options {
  store?: string;
  jobs: string;
  flow?: string;
  idle: string;
  lease: string;
  renew?: string;
  tied?: boolean;
  quiet?: boolean;
}

/** Makes `crore worker` without a subcommand join the flows that run on a store. */
export function joining(command: Command): void {
  command
    .option('--store <url>', 'sqlite:FILE, redis://…, @FILE (default: $CRORE_STORE, else sqlite:crore.db)')
    .option('-j, --jobs <n>', 'number of nodes to run at once', '1')
    .option('--flow <id>', 'join only this flow, and exit when it ends')
    .option('--idle <duration>', 'exit after this long without a running flow', '60s')
    .option('--lease <duration>', 'without a heartbeat for this long, the worker counts as dead', '10s')
    .option('--renew <limits>', 'exit after tasks=N,seconds=N,rss=MB')
    .option('--tied', 'exit when standard input closes (used by launchers)')
    .option('-q, --quiet', 'print nothing');
  action(command, join);
}

async function join(options: Options): Promise<number> {
  const say = options.quiet ? undefined : (text: string) => process.stderr.write(`crore worker: ${text}\n`);
  const worker = await FlowWorker.open({
    store: hideFromProcessList(storeUrl(options)),
    slots: whole(options.jobs, '--jobs', 1, 10_000)!,
    flow: options.flow,
    idle: milliseconds(options.idle, '--idle'),
    lease: milliseconds(options.lease, '--lease'),
    renewal: options.renew === undefined ? undefined : parseRenewal(options.renew),
    say,
    onError: (error) => process.stderr.write(`crore worker on ${hostname()}: ${error.message}\n`),
  });
  let interrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupted = true;
      worker.stop();
    });
  }
  if (options.tied) {
    process.stdin.on('end', () => worker.stop()).on('error', () => worker.stop());
    process.stdin.resume();
  }
  await worker.run();
  process.stdin.destroy();
  return interrupted ? 130 : 0;
}
