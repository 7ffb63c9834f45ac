import type { FlowInfo, Journal, RunningNode, WatchedFlow } from '../../../flow/journal/journal.js';
import { openExistingJournal } from '../../../flow/journal/open.js';
import type { FlowRow, FlowState, FlowsView, FlowView } from '../../api.js';
import { groupedPicture } from './groups.js';
import { type Counts, countStates, factsOf, type NodeFacts, plainPicture } from './nodes.js';
import { WatchedGraph } from './watched-graph.js';

/** The flows of a store, for people who look on. */
export interface FlowViews {
  flows(): Promise<FlowsView>;
  /** Undefined if there is no such flow. */
  flow(id: string): Promise<FlowView | undefined>;
  /** Asks the runner to stop, or marks a flow without a runner as cancelled; false if it has ended or is not there. */
  cancelFlow(id: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Most flows in the list. */
const MOST = 200;
/** How long, in milliseconds, a store without flows is taken for one: each look opens its file. */
const EMPTY_FOR = 2_000;
/** Graphs kept in memory, and the largest one that is read at all. */
const [MOST_GRAPHS, LARGEST] = [4, 250_000];

export function flowViews(url: string): FlowViews {
  return new JournalViews(() => openExistingJournal(url));
}

class JournalViews implements FlowViews {
  /** Most recently used last. */
  readonly #graphs = new Map<string, { graph: WatchedGraph; last?: { stamp: string; view: FlowView } }>();
  #opening: Promise<Journal | undefined> | undefined;
  #emptyUntil = 0;

  /** `open` returns undefined as long as there are no flows. */
  constructor(private readonly open: () => Promise<Journal | undefined>) {}

  async flows(): Promise<FlowsView> {
    const journal = await this.#journal();
    const found = (await journal?.watchAll(MOST + 1)) ?? [];
    return { now: Date.now(), flows: found.slice(0, MOST).map(rowOf), more: found.length > MOST };
  }

  async flow(id: string): Promise<FlowView | undefined> {
    const journal = await this.#journal();
    const found = await journal?.watch(id);
    if (!journal || !found) return undefined;
    const problem = tooLarge(found.info);
    if (problem) return without(found, problem);
    try {
      return await this.#draw(journal, found);
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof NoGraph)) throw error;
      return without(found, error.message);
    }
  }

  async cancelFlow(id: string): Promise<boolean> {
    const journal = await this.#journal();
    return (await journal?.cancel(id)) ?? false;
  }

  async close(): Promise<void> {
    const journal = await this.#opening?.catch(() => undefined);
    this.#opening = undefined;
    this.#graphs.clear();
    await journal?.close();
  }

  /** Opened for the first view that finds one; a failure is tried again. */
  async #journal(): Promise<Journal | undefined> {
    if (performance.now() < this.#emptyUntil) return undefined;
    const opening = this.#opening ?? this.open();
    this.#opening = opening;
    const journal = await opening.catch((error: Error) => {
      this.#opening = undefined;
      throw error;
    });
    if (!journal && this.#opening === opening) {
      this.#opening = undefined;
      this.#emptyUntil = performance.now() + EMPTY_FOR;
    }
    return journal;
  }

  async #draw(journal: Journal, found: WatchedFlow & { running: RunningNode[] }): Promise<FlowView> {
    const { id } = found.info;
    const entry = this.#graphs.get(id) ?? { graph: await readGraph(journal, found.info) };
    this.#keep(id, entry);
    await entry.graph.update(journal);
    const stamp = JSON.stringify([entry.graph.position, found.held, found.info, found.running]);
    if (entry.last?.stamp !== stamp)
      entry.last = { stamp, view: draw(found, factsOf(entry.graph, found, found.running)) };
    return { ...entry.last.view, now: Date.now() };
  }

  #keep(id: string, entry: { graph: WatchedGraph }): void {
    this.#graphs.delete(id);
    this.#graphs.set(id, entry);
    for (const oldest of this.#graphs.keys()) {
      if (this.#graphs.size <= MOST_GRAPHS) return;
      this.#graphs.delete(oldest);
    }
  }
}

class NoGraph extends Error {}

/** Only from the stored text: a server never runs a user's module. */
async function readGraph(journal: Journal, info: FlowInfo): Promise<WatchedGraph> {
  const definition = await journal.definition(info.id);
  if (!definition) throw new NoGraph('Its definition is not in this store, so its graph cannot be shown.');
  try {
    return WatchedGraph.from(info.id, definition);
  } catch (error) {
    throw new NoGraph(`Its stored definition cannot be read: ${(error as Error).message}`);
  }
}

function draw(found: WatchedFlow, facts: NodeFacts): FlowView {
  const { groups } = facts.watched;
  const picture = groups ? groupedPicture(facts, groups) : plainPicture(facts);
  return { now: 0, flow: { ...rowOf(found), counts: countStates(facts.states) }, ...picture };
}

function without(found: WatchedFlow, problem: string): FlowView {
  return { now: Date.now(), flow: rowOf(found), nodes: [], edges: [], criticalPath: [], problem };
}

function tooLarge({ size }: FlowInfo): string | undefined {
  if (size <= LARGEST) return undefined;
  return `A graph of ${size} nodes is too large to be shown here (at most ${LARGEST}).`;
}

function rowOf({ info, held, counts }: WatchedFlow): FlowRow {
  const { id, name, file, size, created, finished, host, pid } = info;
  // Its runner was killed: nobody is left who could say that it has ended.
  const state: FlowState = info.state === 'running' && !held ? 'interrupted' : info.state;
  const row: FlowRow = {
    id,
    name,
    file,
    state,
    size,
    createdAt: created,
    host,
    pid,
    counts: rowCounts(info, held, counts),
  };
  if (finished !== undefined && state !== 'running') row.finishedAt = finished;
  return row;
}

/** What ran when the runner was killed runs again. Cached nodes are done. */
function rowCounts(info: FlowInfo, held: boolean, reported: Counts | undefined): Counts {
  if (reported && held) return reported;
  if (reported) {
    const { running = 0, ready = 0, ...rest } = reported;
    return running + ready === 0 ? rest : { ...rest, ready: running + ready };
  }
  const { cached: _, ...counts } = info.counts ?? {};
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
