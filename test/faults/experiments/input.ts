import { open } from '../../../dist/index.js';
import { openStore } from '../../../dist/store/open.js';
import { newJob } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { inventoryOf, leftovers } from '../history/leftovers.js';
import { type Experiment, onEach } from '../support/experiment.js';
import { FAST } from '../support/lab.js';

const ALL = ['sqlite', 'redis', 'postgres'];
const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!;

const backlog = onEach(ALL, {
  row: 23,
  name: 'many waiting jobs: the cost of a claim and a sweep',
  short: false,
  async run(lab, kind) {
    const store = await openStore(await lab.store(kind), { timeout: 60_000 });
    lab.onClose(() => store.close());
    const session = { queue: 'q', worker: 'w', lease: 600_000 };
    await store.join('q', 'w', { lease: 600_000, info: '' });
    let added = 0;
    const fill = async (to: number) => {
      while (added < to) {
        await store.add(
          'q',
          Array.from({ length: 1_000 }, () => newJob(`j${added++}`)),
        );
      }
    };
    const cost = async () => {
      const claims: number[] = [];
      const sweeps: number[] = [];
      for (let i = 0; i < 60; i++) {
        const start = performance.now();
        await store.claim(session, 10);
        const between = performance.now();
        await store.sweep('q', { lease: 600_000, every: 0 });
        claims.push(between - start);
        sweeps.push(performance.now() - between);
      }
      return { claim: median(claims), sweep: median(sweeps) };
    };
    await fill(1_000);
    await cost();
    await fill(2_000);
    const few = await cost();
    const many = kind === 'redis' ? 500_000 : 300_000;
    await fill(many);
    const after = await cost();
    const ratio = { claim: after.claim / few.claim, sweep: after.sweep / few.sweep };
    const violations = Object.entries(ratio).flatMap(([what, times]) =>
      times > 4 ? [`a ${what} costs ${times.toFixed(1)} times as much`] : [],
    );
    return {
      figure: `${many} waiting beside 1,000: claim x${ratio.claim.toFixed(1)}, sweep x${ratio.sweep.toFixed(1)}`,
      violations,
    };
  },
});

const oneId = onEach(ALL, {
  row: 27,
  name: 'a thousand concurrent adds of one id',
  short: true,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const clients = await Promise.all(Array.from({ length: 8 }, () => open(url, { onError: () => {} })));
    for (const client of clients) lab.onClose(() => client.close());
    const adds = Array.from({ length: 1_000 }, (_x, i) => clients[i % 8]!.queue('q').add(i, { id: 'the one' }));
    const accepted = (await Promise.all(adds)).filter(({ outcome }) => outcome === 'created').length;
    const { ready } = await clients[0]!.queue('q').count();
    const violations = accepted === 1 && ready === 1 ? [] : [`${accepted} were accepted, ${ready} are there`];
    return { figure: `accepted ${accepted}`, violations };
  },
});

const ODD_NAMES = [':', '{', '}', '{x}', '*', '?', '[', ']', '[a]', '\n', ' ', '%', '%7B', '__proto__', 'constructor'];
const MORE_NAMES = [
  '..',
  '/',
  '\\',
  '"',
  "'",
  '`',
  '$(x)',
  'ä',
  '😀',
  'a:b',
  'a:{b}',
  '-',
  '--',
  '\u2028',
  'x'.repeat(100),
];

const bytes = onEach(ALL, {
  row: 28,
  name: 'every byte in payloads, odd characters in names, ids, groups and keys',
  short: true,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const crore = await open(url, { onError: () => {} });
    lab.onClose(() => crore.close());
    const everyByte = Buffer.from(Array.from({ length: 256 }, (_x, i) => i));
    const names = [...ODD_NAMES, ...MORE_NAMES];
    const mismatches: string[] = [];
    const store = await openStore(url, { timeout: 5_000 });
    lab.onClose(() => store.close());
    for (const name of names) {
      const spec = { group: name, unique: { key: name, scope: 'alive' as const, ttl: 0 } };
      await store.add(
        name,
        names.map((id) => newJob(id, { payload: everyByte, ...(id === name ? { spec } : {}) })),
      );
      await store.push(name, [everyByte]);
    }
    for (const name of names) {
      const jobs = await store.get(name, names);
      const wrong = jobs.filter(
        (job, i) => job?.id !== names[i] || !everyByte.equals(Buffer.from(job!.payload as Uint8Array)),
      );
      const [task] = await store.raw!.tasks(name);
      if (wrong.length > 0 || !everyByte.equals(Buffer.from(task!))) mismatches.push(JSON.stringify(name));
    }
    const queues = await store.queues();
    if ([...queues].sort().join('|') !== [...names].sort().join('|')) mismatches.push(`queues: ${queues}`);
    const refused = await crore
      .queue('q')
      .add(1, { id: 'a\0b' })
      .then(
        () => 'accepted',
        (error) => error.code,
      );
    if (refused !== 'BAD_NAME') mismatches.push(`a NUL in an id: ${refused}`);
    return { figure: `${names.length ** 2} jobs, mismatches ${mismatches.length}`, violations: mismatches };
  },
});

const nothingLeft = onEach(ALL, {
  row: 40,
  name: 'nothing is left over when everything has ended and was removed',
  short: true,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const crore = await open(url, { onError: () => {}, logger: false });
    const empty = await inventoryOf(url);
    const keep = { count: 0 };
    for (const name of ['a', 'b']) {
      const queue = crore.queue<number>(name);
      await queue.setLimits({ concurrency: 5, group: { concurrency: 2, rate: { count: 100, per: 50 } } });
      for (let i = 0; i < 40; i++) {
        const options = {
          id: `j${i}`,
          group: `g${i % 4}`,
          unique: `u${i}`,
          attempts: i % 7 === 0 ? 1 : 3,
          keep,
          delay: i % 3,
        };
        await queue.add(i, { ...options, ...(i % 5 === 4 ? { needs: [`j${i - 1}`] } : {}) });
      }
      await crore.queue('after').add(1, { needs: [{ queue: name, id: 'j39' }], keep });
      await queue.push(['x', 'y']);
    }
    await crore.schedule('tick', '1h', { queue: 'a', payload: 1 });
    const work = (name: string) =>
      crore.queue<number>(name).work(
        async (job) => {
          await job.progress(1);
          await job.log('line');
          if (job.payload === 7) throw new Error('no');
        },
        { ...FAST, concurrency: 5, backoff: () => 1 },
      );
    const workers = ['a', 'b', 'after'].map(work);
    const waiting = async () => {
      const counts = await Promise.all(['a', 'b', 'after'].map((name) => crore.queue(name).count()));
      return counts.reduce(
        (sum, { ready, active, scheduled, blocked }) => sum + ready + active + scheduled + blocked,
        0,
      );
    };
    await until('everything to end', async () => (await waiting()) === 0);
    for (const worker of workers) await worker.close();
    await crore.unschedule('tick');
    for (const name of ['a', 'b', 'after']) await crore.queue(name).obliterate();
    await crore.close();
    const left = leftovers(empty, await inventoryOf(url)).filter((text) => !isExpected(text));
    return { figure: `leftovers ${left.length}`, violations: left };
  },
});

/** What the documentation says stays for a while: the names and positions of queues, their charts, counters that give out row numbers. */
const isExpected = (text: string) => /registry|:meta:|:history:|^(history|queues|sqlite_sequence|counters):/.test(text);

export const INPUT_FAULTS: Experiment[] = [...backlog, ...oneId, ...bytes, ...nothingLeft];
