import type { CallRunner } from '../../pool/call-host.js';
import { hostCalls } from '../../pool/host-process.js';
import { type SentError, unpackError } from '../../pool/sent-error.js';
import type { Graph } from '../graph/graph.js';
import { loadModule } from '../input/module.js';
import type { NodeOutcome, NodeTask } from './executor.js';
import { callFunction } from './in-process-executor.js';
import type { FunctionCallMessage, FunctionEnd } from './process-executor.js';

/** Loads the module of a flow once, then calls its functions one after another. */
class FunctionRunner implements CallRunner {
  #graph: Graph | undefined;
  #task: NodeTask | undefined;

  constructor(private readonly module: string) {}

  async load(): Promise<void> {
    this.#graph = await loadModule(this.module);
  }

  async run({ node, ...rest }: FunctionCallMessage): Promise<FunctionEnd> {
    const { index, specs } = this.#graph!;
    const place = index.get(node);
    const spec = place === undefined ? undefined : specs[place];
    if (spec?.work.kind !== 'function') {
      return { outcome: { exit: 1, fatal: true, error: `the module has no function for node '${node}'` }, rss: 0 };
    }
    const task: NodeTask = { node: place!, spec, here: true, startedAt: Date.now(), needs: undefined, ...rest };
    this.#task = task;
    const outcome = await callFunction(spec.work.call, task);
    this.#task = undefined;
    return { outcome: writable(outcome), rss: process.memoryUsage.rss() };
  }

  stop(reason: SentError): void {
    this.#task?.stop?.((unpackError(reason) as Error).message);
  }
}

/** A value that cannot be serialized as JSON becomes a failure with a message that can. */
function writable(outcome: NodeOutcome): NodeOutcome {
  try {
    JSON.stringify(outcome.value);
    return outcome;
  } catch (error) {
    const [why] = (error as Error).message.split('\n');
    return { exit: 1, fatal: true, error: `its result cannot be written as JSON: ${why}` };
  }
}

/** The program of a process that runs the functions of a flow. */
await hostCalls(new FunctionRunner(process.argv[2]!));
