/** What happens when nobody reads the output any longer, as after `| head -1`, or when it cannot be written. */

const NAMES = ['stdout', 'stderr'] as const;
const listeners = new Set<() => void>();
/** Those that have been used. */
export const openStreams: NodeJS.WriteStream[] = [];
let guarded = false;
let closed = false;

/**
 * Without this, writing to a closed pipe ends the process with a stack trace. A server or a worker must continue then; a
 * command that only lists asks `outputClosed`, and stops. Streams are opened by their first use: a quiet command uses none.
 */
export function guardStreams(): void {
  if (guarded) return;
  guarded = true;
  for (const name of NAMES) {
    const property = Object.getOwnPropertyDescriptor(process, name)!;
    const get = () => {
      Object.defineProperty(process, name, property);
      openStreams.push(process[name].on('error', (error: NodeJS.ErrnoException) => onError(name, error)));
      return process[name];
    };
    Object.defineProperty(process, name, { ...property, get });
  }
}

function onError(name: (typeof NAMES)[number], error: NodeJS.ErrnoException): void {
  if (name === 'stderr') return; // there is nowhere left to report it
  const first = !closed;
  closed = true;
  for (const listener of listeners) listener();
  // A terminal that was closed is a reader that is gone, too; a full disk is an error.
  if (!first || error.code === 'EPIPE' || process.stdout.isTTY) return;
  process.stderr.write(`crore: cannot write the output: ${error.code ?? error.message}\n`);
  process.once('exit', () => {
    process.exitCode ||= 1;
  });
}

/** Whether a write to standard output has failed because its reader is gone. */
export function outputClosed(): boolean {
  return closed;
}

/** Calls `listener` when that happens; returns how to unsubscribe. */
export function onOutputClosed(listener: () => void): () => void {
  listeners.add(listener);
  if (closed) listener();
  return () => listeners.delete(listener);
}
