import { randomBytes } from 'node:crypto';
import { CroreError } from '../../errors.js';
import { connect } from '../../store/postgres/connect.js';
import { texts } from '../../store/postgres/connection/arguments.js';
import type { PostgresClient, Row } from '../../store/postgres/connection/client.js';
import type { PostgresUrl } from '../../store/postgres/connection/options.js';
import type { NodeEnd } from '../graph/node-spec.js';
import {
  decodeEnds,
  decodeRunning,
  encodeEnds,
  encodeRunning,
  type FlowInfo,
  type FlowState,
  HOLD,
  type Journal,
  type Memory,
  type RunnerReport,
  type WatchedFlow,
} from './journal.js';

/** Rows that are read at once: of completions, and of cache records. */
const [ENDS_PAGE, MEMORIES_PAGE] = [500, 5_000];

const NOW = 'floor(extract(epoch from clock_timestamp()) * 1000)';
const HELD = `h.holder is not null and h.until >= ${NOW} as held`;
const FLOWS = 'from crore.flows f join crore.flow_holds h on h.flow = f.n';

/** One connection: what a runner sends arrives in the order it was sent. */
export async function openPostgresJournal(url: string, parsed: PostgresUrl, timeout: number): Promise<PostgresJournal> {
  const { client } = await connect(url, parsed, { timeout, connections: 1 });
  return new PostgresJournal(client);
}

/** The journal on PostgreSQL: every change is one function, see sql/flows/. All of them may be repeated after a lost reply. */
export class PostgresJournal implements Journal {
  readonly #token = randomBytes(9).toString('base64url');
  #flow = 0;
  #id = '';
  /** How many rows of completions the flow has. */
  #written = 0;

  constructor(private readonly client: PostgresClient) {}

  async list(): Promise<FlowInfo[]> {
    return (await this.client.read('select info, state from crore.flows order by n', [])).map(readInfo);
  }

  async get(id: string): Promise<FlowInfo | undefined> {
    const [row] = await this.client.read('select info, state from crore.flows where id = $1', [id]);
    return row && readInfo(row);
  }

  async begin(info: FlowInfo, definition: string): Promise<void> {
    const args = [info.id, info.state, JSON.stringify(info), definition, this.#token, HOLD];
    const flow = (await this.client.value('begin_flow', args)) as number | null;
    if (flow === null) throw new CroreError('FLOW_BUSY', `there is already a flow '${info.id}'`);
    [this.#flow, this.#id, this.#written] = [flow, info.id, 0];
  }

  async takeOver(id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean> {
    for (;;) {
      const [known] = await this.client.read('select info, state from crore.flows where id = $1', [id]);
      if (!known) return false;
      const info = JSON.stringify({ ...readInfo(known), ...by, state: 'running' });
      const args = [id, known.info as string, info, this.#token, HOLD, dead];
      const [row] = await this.client.rows('take_over_flow', args);
      if (row!.answer === 'changed') continue;
      if (row!.answer !== 'taken') return false;
      [this.#flow, this.#id, this.#written] = [row!.flow as number, id, row!.written as number];
      return true;
    }
  }

  async definition(id: string): Promise<string | undefined> {
    const [row] = await this.client.read('select definition from crore.flows where id = $1', [id]);
    return row?.definition as string | undefined;
  }

  async ends(id: string): Promise<NodeEnd[]> {
    return (await this.endsAfter(id, 0)).ends;
  }

  async endsAfter(id: string, position: number): Promise<{ ends: NodeEnd[]; position: number }> {
    const after = `select e.n, e.body from crore.flow_ends e
      where e.flow = (select f.n from crore.flows f where f.id = $1) and e.n > $2::bigint order by e.n limit ${ENDS_PAGE}`;
    const ends: NodeEnd[] = [];
    for (let at = position; ; ) {
      const rows = await this.client.read(after, [id, at]);
      for (const { body } of rows) for (const end of decodeEnds(JSON.parse(body as string))) ends.push(end);
      at = (rows.at(-1)?.n as number | undefined) ?? at;
      if (rows.length < ENDS_PAGE) return { ends, position: at };
    }
  }

  /** The number of the row makes a retry after a lost reply harmless. */
  async write(ends: readonly NodeEnd[]): Promise<void> {
    const args = [this.#flow, this.#token, this.#written + 1, encodeEnds(ends)];
    if ((await this.client.value('write_flow', args)) !== true)
      throw new CroreError('LEASE_LOST', 'another runner has taken over this flow');
    this.#written++;
  }

  async hold(report?: () => RunnerReport): Promise<'held' | 'cancel' | 'lost'> {
    const { counts, running } = report?.() ?? {};
    const said = [counts ? JSON.stringify(counts) : null, running ? encodeRunning(running) : null] as const;
    return (await this.client.value('hold_flow', [this.#flow, this.#token, HOLD, ...said])) as 'held';
  }

  async finish(state: FlowState, counts: Record<string, number>): Promise<void> {
    const known = await this.get(this.#id);
    const info = JSON.stringify({ ...known, state, counts, finished: Date.now() });
    await this.client.value('finish_flow', [this.#flow, this.#token, state, info]);
  }

  async cancel(id: string): Promise<boolean> {
    return (await this.client.value('cancel_flow', [id])) === true;
  }

  async isHeld(id: string): Promise<boolean> {
    const [row] = await this.client.read(`select ${HELD} ${FLOWS} where f.id = $1`, [id]);
    return row?.held === true;
  }

  async forget(id: string): Promise<void> {
    await this.client.value('forget_flow', [id]);
  }

  async watchAll(most: number): Promise<WatchedFlow[]> {
    const newest = `select f.info, f.state, h.counts, ${HELD} ${FLOWS} order by f.n desc limit $1::bigint`;
    return (await this.client.read(newest, [most])).map(readWatched);
  }

  async watch(id: string): Promise<(WatchedFlow & Pick<RunnerReport, 'running'>) | undefined> {
    const one = `select f.info, f.state, h.counts, h.running, ${HELD} ${FLOWS} where f.id = $1`;
    const [row] = await this.client.read(one, [id]);
    return row && { ...readWatched(row), running: decodeRunning((row.running ?? undefined) as string | undefined) };
  }

  async recall(name: string): Promise<Map<string, Memory>> {
    const page = `select node, body from crore.flow_memories where name = $1 and node > $2 order by node limit ${MEMORIES_PAGE}`;
    const memories = new Map<string, Memory>();
    for (let after = ''; ; ) {
      const rows = await this.client.read(page, [name, after]);
      for (const { node, body } of rows) memories.set(node as string, JSON.parse(body as string) as Memory);
      if (rows.length < MEMORIES_PAGE) return memories;
      after = rows.at(-1)!.node as string;
    }
  }

  async remember(name: string, memories: readonly [string, Memory][]): Promise<void> {
    const last = new Map(memories);
    const bodies = [...last.values()].map((memory) => JSON.stringify(memory));
    await this.client.value('remember_nodes', [name, texts([...last.keys()]), texts(bodies)]);
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

function readWatched(row: Row): WatchedFlow {
  const counts = row.counts ? { counts: JSON.parse(row.counts as string) as RunnerReport['counts'] } : {};
  return { info: readInfo(row), held: row.held === true, ...counts };
}

function readInfo(row: Row): FlowInfo {
  return { ...(JSON.parse(row.info as string) as FlowInfo), state: row.state as FlowState };
}
