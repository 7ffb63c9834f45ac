import { loadModule } from '../input/module.js';
import type { NodeTask } from './executor.js';
import { callFunction } from './in-process-executor.js';
import type { ProcessRequest, ProcessResponse } from './process-executor.js';

/** The program of a worker process: loads the module once, then calls its functions one after another. */
const running = new Map<number, NodeTask>();
// The IPC channel to the runner keeps this process alive; without it there is nothing left to do.
process.on('disconnect', () => process.exit(0));
const graph = await loadModule(process.argv[2]!);

function say(answer: ProcessResponse): void {
  if (process.connected) process.send!(answer);
}

async function obey(order: ProcessRequest): Promise<void> {
  if ('stop' in order) {
    running.get(order.stop)?.stop?.(order.why);
    return;
  }
  const { call, node, ...rest } = order;
  const index = graph.index.get(node);
  const spec = index === undefined ? undefined : graph.specs[index];
  if (spec?.work.kind !== 'function') {
    say({ call, outcome: { exit: 1, fatal: true, error: `the module has no function for node '${node}'` }, rss: 0 });
    return;
  }
  const task: NodeTask = { node: index!, spec, here: true, startedAt: Date.now(), needs: rest.needs, ...rest };
  running.set(call, task);
  const outcome = await callFunction(spec.work.call, task);
  running.delete(call);
  say({ call, outcome: writable(outcome), rss: process.memoryUsage.rss() });
}

/** A value that cannot be serialized as JSON becomes a failure with a message that can. */
function writable<T extends { value?: unknown }>(outcome: T): T | { exit: number; fatal: true; error: string } {
  try {
    JSON.stringify(outcome.value);
    return outcome;
  } catch (error) {
    return {
      exit: 1,
      fatal: true,
      error: `its result cannot be written as JSON: ${(error as Error).message.split('\n')[0]}`,
    };
  }
}

process.on('message', (order) => void obey(order as ProcessRequest));
say({ ready: true });
