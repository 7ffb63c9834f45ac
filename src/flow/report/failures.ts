import type { NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Paint } from './screen.js';

/** How many failures are listed with their output. */
const WITH_OUTPUT = 100;

/** The failures of a run, for the list at its end. */
export class Failures {
  readonly #all: { id: string; why: string; output?: string }[] = [];

  add(end: NodeEnd, task: NodeTask): void {
    const why = reasonOf(end, task);
    const shown = this.#all.length < WITH_OUTPUT && end.output !== end.error;
    this.#all.push({ id: end.id, why, ...(shown ? { output: end.output } : {}) });
  }

  /** The list, or nothing. */
  text(paint: Paint): string {
    if (this.#all.length === 0) return '';
    const lines = this.#all.map(({ id, why, output }) => {
      const quoted = output === undefined ? '' : `${output.replace(/^/gm, `    ${paint('|', 'dim')} `)}\n`;
      return `  ${paint(id, 'red')}: ${why}\n${quoted}`;
    });
    return `\nfailed nodes:\n${lines.join('')}`;
  }
}

/** The exit code says something about a command; a function, a job and a map node only have an error. */
function reasonOf({ exit, error }: NodeEnd, { spec, part }: NodeTask): string {
  const code = `exit ${exit}`;
  const command = spec.work.kind === 'shell' && (spec.map === undefined || part !== undefined);
  if (error === undefined || error === code) return code;
  return command ? `${code}: ${error}` : error;
}
