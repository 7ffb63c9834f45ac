import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { CroreError } from '../../errors.js';
import { randomToken } from '../../process/random.js';
import type { Graph } from '../graph/graph.js';
import { graphText } from '../graph/graph-text.js';
import type { NodeEnd } from '../graph/node-spec.js';
import { FileJournal } from '../journal/file-journal.js';
import { type FlowInfo, type Journal, NoJournal } from '../journal/journal.js';
import { openJournal } from '../journal/open.js';
import type { StartOptions } from './start.js';

/** How many finished flows of one name a store keeps. */
const KEPT = 10;
/** Completions moved in one write. */
const BATCH = 1_000;

/** Opens the journal: text files for a private flow, or a store when workers join, because they need one. */
export async function journalOf({ store, localState: place, launches = [] }: StartOptions): Promise<Journal> {
  if (store === undefined) return new NoJournal();
  if (!place) return openJournal(store);
  const plain = new FileJournal(place.journal);
  if (launches.length === 0 && !existsSync(place.store.slice('sqlite:'.length))) return plain;
  const journal = await openJournal(store, { relaxed: true });
  await move(plain, journal);
  return journal;
}

/** Moves a flow that was started without workers into a store. If interrupted at any point, it can be repeated. */
async function move(from: FileJournal, to: Journal): Promise<void> {
  const [info] = await from.list();
  if (!info) return;
  const by = { host: hostname(), pid: process.pid };
  if (!(await from.takeOver(info.id, by, isDead(info)))) throw busy(info);
  await to.forget(info.id);
  await to.begin({ ...info, ...by }, '');
  const ends = await from.ends();
  for (let at = 0; at < ends.length; at += BATCH) await to.write(ends.slice(at, at + BATCH));
  await to.finish('interrupted', {});
  await from.close();
  from.drop();
}

/** Starts a new flow, or returns the unfinished one of that name with its completions. */
export async function claimFlow(
  graph: Graph,
  options: StartOptions,
  journal: Journal,
): Promise<{ info: FlowInfo; ends: NodeEnd[] }> {
  // A private location holds one flow, whatever its earlier name.
  const known = (await journal.list()).filter(({ name }) => options.localState || name === graph.name);
  const by = { host: hostname(), pid: process.pid };
  if (options.resume) {
    const found = typeof options.resume === 'string' ? known.find(({ id }) => id === options.resume) : latest(known);
    if (typeof options.resume === 'string' && !found)
      throw new CroreError('NOT_FOUND', `there is no flow '${options.resume}'`);
    if (found) {
      if (!(await journal.takeOver(found.id, by, isDead(found)))) throw busy(found);
      return { info: found, ends: await journal.ends(found.id) };
    }
  }
  if (options.localState) await clearPrivate(known, journal);
  else await prune(known.slice(0, -KEPT), journal);
  const { name } = graph;
  const info: FlowInfo = {
    id: `${name}-${randomToken().toString('hex', 0, 4)}`,
    name,
    file: options.file ?? '',
    state: 'running',
    size: graph.ids.length,
    created: Date.now(),
    ...by,
  };
  // A private flow needs no stored definition: the file it came from is at hand.
  await journal.begin(info, options.localState || journal instanceof NoJournal ? '' : graphText(graph));
  return { info, ends: [] };
}

/** The latest unfinished run, else the latest finished one, of which nothing runs again. */
function latest(known: readonly FlowInfo[]): FlowInfo | undefined {
  const open = known.findLast(({ state }) => state !== 'done' && state !== 'cancelled');
  return open ?? (known.at(-1)?.state === 'done' ? known.at(-1) : undefined);
}

/** Removes old flows that no runner holds. */
async function prune(old: readonly FlowInfo[], journal: Journal): Promise<void> {
  for (const { id } of old) if (!(await journal.isHeld(id))) await journal.forget(id);
}

async function clearPrivate(known: readonly FlowInfo[], journal: Journal): Promise<void> {
  for (const info of known) {
    if ((await journal.isHeld(info.id)) && !isDead(info)) throw busy(info);
    await journal.forget(info.id);
  }
}

/** On this machine, checks whether the runner's process is alive; on other machines, only its renewals show that. */
function isDead({ host, pid }: FlowInfo): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return pid === process.pid;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function busy({ id, host, pid }: FlowInfo): CroreError {
  return new CroreError('FLOW_BUSY', `flow '${id}' is being run by process ${pid} on ${host}`);
}
