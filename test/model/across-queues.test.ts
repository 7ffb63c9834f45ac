import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { BatchPolicy, State } from '../../dist/job/job.js';
import { die, finish, park } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

/** Jobs that depend on each other across queues, in cycles of queues too: needs, children, members of batches. CRORE_MODEL_RUNS=500 runs more histories. */
const numRuns = Math.ceil(Number(process.env.CRORE_MODEL_RUNS ?? 200) / 8);
const wanted = process.env.CRORE_MODEL_SEED ?? 'random';
const seed = wanted === 'random' ? undefined : Number(wanted);
const QUEUES = 5;
const LEASE = 60_000;

interface Plan {
  queue: number;
  /** How far back in the list the jobs it needs are. */
  needs: { back: number; on: 'success' | 'finished' }[];
}
type How = 'done' | 'dead' | 'cancelled';
type Child = { queue: number; on: 'success' | 'finished' };
type Step =
  | { do: 'add'; plan: Plan; member?: number }
  | { do: 'end'; which: number; how: How }
  | { do: 'park'; which: number; children: Child[] }
  | { do: 'batch'; queue: number; policy: BatchPolicy }
  | { do: 'close'; which: number }
  | { do: 'move'; which: number; to: number }
  | { do: 'sweep'; queue: number };

const policy = fc.constantFrom('success' as const, 'finished' as const);
const plan = fc.record({
  queue: fc.nat(QUEUES - 1),
  needs: fc.array(fc.record({ back: fc.nat(8), on: policy }), { maxLength: 4 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record(
      { do: fc.constant('add' as const), plan, member: fc.nat(10) },
      { requiredKeys: ['do', 'plan'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('park' as const),
      which: fc.nat(100),
      children: fc.array(fc.record({ queue: fc.nat(QUEUES - 1), on: policy }), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('batch' as const),
      queue: fc.nat(QUEUES - 1),
      policy: fc.constantFrom<BatchPolicy>('finished', 'failure'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), which: fc.nat(10) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('move' as const), which: fc.nat(100), to: fc.nat(QUEUES - 1) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(100),
      how: fc.constantFrom<How>('done', 'done', 'dead', 'cancelled'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const), queue: fc.nat(QUEUES - 1) }) },
);

interface Node {
  queue: number;
  id: string;
  needs: { node: Node; on: 'success' | 'finished' }[];
  /** The children that it waits, or has waited, for. */
  children?: { node: Node; on: 'success' | 'finished' }[];
  batch?: { policy: BatchPolicy; open: boolean; members: Node[] };
  end?: How;
}

const isEnded = (state: State) => state === 'done' || state === 'dead' || state === 'cancelled';
const isFailed = (state: State) => state === 'dead' || state === 'cancelled';

/** The expected state of a job once all updates have arrived. */
function stateOf(node: Node): State {
  if (node.end) return node.end;
  const waitsFor = node.children ?? node.needs;
  const ups = waitsFor.map(({ node: up, on }) => ({ state: stateOf(up), on }));
  if (ups.some(({ state, on }) => on === 'success' && isFailed(state))) return node.children ? 'dead' : 'cancelled';
  if (!ups.every(({ state }) => isEnded(state))) return 'blocked';
  return node.children || !node.batch || isComplete(node.batch) ? 'ready' : 'blocked';
}

/** Whether a job has to wait for another one, directly or not. */
function waitsFor(node: Node, other: Node): boolean {
  const below = [...node.needs, ...(node.children ?? [])].map((edge) => edge.node).concat(node.batch?.members ?? []);
  return node === other || below.some((one) => waitsFor(one, other));
}

function isComplete({ policy: when, open, members }: NonNullable<Node['batch']>): boolean {
  const states = members.map(stateOf);
  return (when === 'failure' && states.some(isFailed)) || (!open && states.every(isEnded));
}

describe('dependencies across queues', () => {
  let redis: RedisServer;
  let stores: [string, Store][];
  let runs = 0;

  beforeAll(async () => {
    redis = await RedisServer.start();
    stores = [
      ['sqlite', await openStore('sqlite::memory:', { timeout: 10_000 })],
      ['redis', await openStore(redis.url, { timeout: 10_000 })],
      ['postgres', await openStore(`${inject('postgresUrl')}?schema=across`, { timeout: 10_000 })],
    ];
  });
  afterAll(async () => {
    for (const [, store] of stores) await store.close();
    await redis.stop();
  });

  const names = (run: number) => Array.from({ length: QUEUES }, (_x, i) => `across-${run}-${i}`);

  async function play(store: Store, queues: string[], steps: readonly Step[]): Promise<void> {
    const nodes: Node[] = [];
    for (const queue of queues) await store.join(queue, 'w', { lease: LEASE, info: '' });
    const agree = () =>
      until(
        () => `${JSON.stringify(nodes.map((node) => [node.id, stateOf(node)]))} everywhere`,
        async () => {
          for (const node of nodes) {
            const [job] = await store.get(queues[node.queue]!, [node.id]);
            if (job?.state !== stateOf(node)) return false;
          }
          return true;
        },
        { within: 5_000, every: 2 },
      );
    for (const one of steps) {
      await playOne(store, queues, nodes, one);
      await agree();
    }
    for (const node of nodes.filter(({ batch }) => batch?.open)) {
      await close(store, queues, node);
      await agree();
    }
    for (let left = nodes.length; left > 0 && nodes.some((node) => stateOf(node) === 'ready'); left--) {
      await endOne(store, queues, nodes, 0, 'done');
      await agree();
    }
    expect(nodes.filter((node) => stateOf(node) === 'blocked')).toEqual([]);
    for (const { queue, id, batch } of nodes) {
      const expected = batch && countsOf(batch);
      if (expected) expect((await store.get(queues[queue]!, [id]))[0]!.batch).toEqual(expected);
    }
  }

  it('resolve as the graph requires, on every store, in any order of adds, ends and sweeps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
        runs += 1;
        for (const [, store] of stores) await play(store, names(runs), steps);
      }),
      { numRuns, seed, endOnFailure: true },
    );
  }, 120_000);

  it('leave nothing to do when everything has ended: no more scripts run', async () => {
    const scripts = async () => (await redis.calls('evalsha')) + (await redis.calls('eval'));
    await until('no more scripts run', async () => {
      const before = await scripts();
      await new Promise((resolve) => setTimeout(resolve, 100)); // enough time for a loop to run thousands of them
      return (await scripts()) === before;
    });
    const left = (await redis.client.keys('*')).filter((key) => /:(outbox|deps:.*|downs|edges|blocked)$/.test(key));
    expect(left).toEqual([]);
  });
});

async function playOne(store: Store, queues: string[], nodes: Node[], one: Step): Promise<void> {
  switch (one.do) {
    case 'add':
      return add(store, queues, nodes, one.plan, one.member);
    case 'sweep':
      await store.sweep(queues[one.queue]!, { lease: LEASE, every: 0 });
      return;
    case 'park':
      return parkOne(store, queues, nodes, one.which, one.children);
    case 'batch': {
      const batch = { policy: one.policy, open: true, members: [] };
      const node: Node = { queue: one.queue, id: `j${nodes.length}`, needs: [], batch };
      await store.add(queues[one.queue]!, [newJob(node.id, { spec: { batchPolicy: one.policy } })]);
      nodes.push(node);
      return;
    }
    case 'close': {
      const batches = nodes.filter(({ batch }) => batch?.open);
      if (batches.length > 0) await close(store, queues, batches[one.which % batches.length]!);
      return;
    }
    case 'move':
      return moveOne(store, queues, nodes, one.which, one.to);
    case 'end':
      return endOne(store, queues, nodes, one.which, one.how);
  }
}

/** Counts of a batch whose job has ended. */
function countsOf({ members }: NonNullable<Node['batch']>): object {
  const count = (how: How) => members.filter((member) => stateOf(member) === how).length;
  return {
    open: false,
    total: members.length,
    done: count('done'),
    dead: count('dead'),
    cancelled: count('cancelled'),
  };
}

async function close(store: Store, queues: string[], node: Node): Promise<void> {
  await store.batches.close(queues[node.queue]!, node.id);
  node.batch!.open = false;
}

async function add(
  store: Store,
  queues: string[],
  nodes: Node[],
  { queue, needs }: Plan,
  member?: number,
): Promise<void> {
  const ups = new Map(
    needs.filter(({ back }) => back < nodes.length).map(({ back, on }) => [nodes.at(-1 - back)!, on] as const),
  );
  const node: Node = { queue, id: `j${nodes.length}`, needs: [...ups].map(([up, on]) => ({ node: up, on })) };
  // A member that waits for its own batch would wait for ever.
  const batches = nodes.filter((other) => other.batch && ![...ups.keys()].some((up) => waitsFor(up, other)));
  const owner = member === undefined || batches.length === 0 ? undefined : batches[member % batches.length]!;
  const spec = {
    ...(ups.size > 0
      ? { needs: node.needs.map(({ node: up, on }) => ({ queue: queues[up.queue]!, id: up.id, on })) }
      : {}),
    ...(owner ? { batch: { queue: queues[owner.queue]!, id: owner.id } } : {}),
  };
  const adding = store.add(queues[queue]!, [newJob(node.id, Object.keys(spec).length > 0 ? { spec } : {})]);
  if (owner && !(owner.batch!.open && stateOf(owner) === 'blocked' && !owner.children)) {
    await expect(adding).rejects.toMatchObject({ code: 'BATCH_CLOSED' });
    return;
  }
  await adding;
  if (owner) owner.batch!.members.push(node);
  nodes.push(node);
}

/** Moves a job that no other job depends on, and that depends on none. A dead one is ready in the other queue. */
async function moveOne(store: Store, queues: string[], nodes: Node[], which: number, to: number): Promise<void> {
  const related = new Set(
    nodes.flatMap(({ needs, children = [], batch }) => [
      ...[...needs, ...children].map((edge) => edge.node),
      ...(batch?.members ?? []),
    ]),
  );
  const free = nodes.filter(
    (node) => node.queue !== to && node.needs.length === 0 && !node.children && !node.batch && !related.has(node),
  );
  const node = free[which % Math.max(1, free.length)];
  if (!node) return;
  const state = stateOf(node);
  const isMovable = state === 'ready' || state === 'dead';
  const [outcome] = await store.move(queues[node.queue]!, [node.id], queues[to]!);
  expect(outcome).toBe(isMovable ? 'moved' : 'started');
  if (!isMovable) return;
  node.queue = to;
  delete node.end;
}

/** A ready job adds children and waits for them. */
async function parkOne(store: Store, queues: string[], nodes: Node[], which: number, children: Child[]): Promise<void> {
  const ready = nodes.filter((node) => stateOf(node) === 'ready');
  const chosen = ready[which % Math.max(1, ready.length)];
  if (!chosen) return;
  const queue = queues[chosen.queue]!;
  const { entries } = await store.claim({ queue, worker: 'w', lease: LEASE }, 1);
  const job = entries[0]!.job!;
  const parent = nodes.find((node) => node.queue === chosen.queue && node.id === job.id)!;
  const added = children.map(({ queue: of, on }) => {
    const node: Node = { queue: of, id: `j${nodes.length}`, needs: [] };
    nodes.push(node);
    return { node, on };
  });
  for (const { node } of added)
    await store.add(queues[node.queue]!, [newJob(node.id, { spec: { parent: { queue, id: job.id } } })]);
  const all = [...(parent.children ?? []), ...added];
  const list = all.map(({ node, on }) => ({ queue: queues[node.queue]!, id: node.id, on }));
  await store.settle(queue, [settlementOf(entries[0]!, park(job, { first: 0, children: list }))]);
  parent.children = all;
}

/** Ends one of the ready jobs, or cancels any job that has not ended. */
async function endOne(store: Store, queues: string[], nodes: Node[], which: number, how: How): Promise<void> {
  const open = nodes.filter((node) => ['ready', 'blocked'].includes(stateOf(node)));
  if (how === 'cancelled') {
    const node = open[which % Math.max(1, open.length)];
    if (!node) return;
    await store.cancel(queues[node.queue]!, [node.id]);
    node.end = 'cancelled';
    return;
  }
  const ready = open.filter((node) => stateOf(node) === 'ready');
  const chosen = ready[which % Math.max(1, ready.length)];
  if (!chosen) return;
  const queue = queues[chosen.queue]!;
  const { entries } = await store.claim({ queue, worker: 'w', lease: LEASE }, 1);
  const job = entries[0]!.job!;
  const move = how === 'done' ? finish(job) : die(job, 'no');
  await store.settle(queue, [settlementOf(entries[0]!, move)]);
  nodes.find((node) => node.queue === chosen.queue && node.id === job.id)!.end = how;
}
