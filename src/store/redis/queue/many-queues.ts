import type { QuietQueue, WorkerSession } from '../../store.js';
import type { Arg, Reply } from '../connection/client.js';
import type { KeyWatch } from '../connection/key-watch.js';
import type { ScriptName } from '../scripts.js';
import type { View } from '../view.js';

/** What an idle process asks about all of its queues: as few calls as the server allows, because a call costs more than what it asks. */

/** Queues per call. */
const TOGETHER = 100;
/** Servers behind a proxy may have slots although they do not look like a cluster. */
const views = new WeakSet<View>();

function hasSlots(view: View): boolean {
  return view.client.isCluster || views.has(view);
}

/** Renews sessions, a hundred in a call. */
export function heartbeat(view: View, sessions: readonly WorkerSession[]): Promise<boolean[]> {
  const keysOf = (part: readonly WorkerSession[]) => {
    const { list, stem } = view.keys.queue(part[0]!.queue);
    return [list, stem, ...part.map(({ queue }) => `${view.keys.queue(queue).stem}workers`)];
  };
  return runOnMany(view, 'heartbeat', sessions, keysOf, ({ worker, lease }) => [worker, String(lease)]);
}

/** Sweeps queues in which there is nothing to do, a hundred in a call; false where there is. */
export function sweepQuiet(view: View, queues: readonly QuietQueue[]): Promise<boolean[]> {
  const keysOf = (part: readonly QuietQueue[]) =>
    part.flatMap(({ queue }) => [view.keys.queue(queue).list, view.keys.queue(queue).stem]);
  return runOnMany(view, 'sweep_quiet', queues, keysOf, ({ lease, every = 0 }) => [String(lease), String(every)]);
}

/**
 * Of these queues, those in which something is ready: other programs push tasks without a signal. Such a task is written to the plain list of the queue; where that is watched,
 * the queue is looked at once, and again after the list was written.
 */
export async function withReady(
  view: View,
  queues: readonly string[],
  watch: KeyWatch,
  ask: () => void,
): Promise<string[]> {
  const listOf = (queue: string) => view.keys.queue(queue).list;
  const unknown = queues.filter((queue) => !watch.isUnwritten(listOf(queue)));
  if (unknown.length === 0) return [];
  if (!watch.isProven) watch.prove(`${view.keys.queue(unknown[0]!).stem}workers`); // heartbeats write it
  const look = (part: readonly string[]) => {
    watch.watch(part.map(listOf), ask);
    return countReady(view, part);
  };
  const counts = await inParts(view, unknown, look);
  const size = hasSlots(view) ? 1 : TOGETHER;
  const found = counts.flatMap((count, i) => (count === 0 ? [] : unknown.slice(i * size, (i + 1) * size)));
  if (found.length < 2 || size === 1) return found;
  const own = await Promise.all(found.map((queue) => countReady(view, [queue])));
  return found.filter((_queue, i) => own[i] !== 0);
}

function countReady(view: View, queues: readonly string[]): Promise<Reply> {
  return view.client.call('EXISTS', ...queues.flatMap((queue) => readyKeys(view, queue)));
}

function readyKeys(view: View, queue: string): string[] {
  const { list, stem } = view.keys.queue(queue);
  return [list, `${stem}ready`, `${stem}prio`, `${stem}turns`];
}

/** Runs a script that takes the keys of many queues and answers 1 or 0 for each. */
async function runOnMany<T>(
  view: View,
  name: ScriptName,
  items: readonly T[],
  keysOf: (part: readonly T[]) => Arg[],
  argumentsOf: (item: T) => Arg[],
): Promise<boolean[]> {
  const replies = await inParts(view, items, (part) => {
    const args = [view.time(), ...part.flatMap(argumentsOf)];
    return view.client.run(name, keysOf(part), args).then(({ reply }) => reply as Reply[]);
  });
  return replies.flat().map((reply) => reply === 1);
}

/** Calls `ask` with parts of the items: with one at a time if each may be in another slot. */
async function inParts<T, R>(view: View, items: readonly T[], ask: (part: readonly T[]) => Promise<R>): Promise<R[]> {
  const size = hasSlots(view) ? 1 : TOGETHER;
  const parts: (readonly T[])[] = [];
  for (let i = 0; i < items.length; i += size) parts.push(items.slice(i, i + size));
  try {
    return await Promise.all(parts.map(ask));
  } catch (error) {
    if (hasSlots(view) || !/CROSSSLOT/.test((error as Error).message)) throw error;
    views.add(view);
    return inParts(view, items, ask);
  }
}
