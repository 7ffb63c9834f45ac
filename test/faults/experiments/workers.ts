import { openStore } from '../../../dist/store/open.js';
import { freeze } from '../../support/freeze.js';
import type { Program } from '../../support/processes.js';
import { until } from '../../support/wait.js';
import { attemptsOf } from '../history/attempts.js';
import type { Verdict } from '../history/checker.js';
import { type Experiment, type Finding, onEach } from '../support/experiment.js';
import { BACK_WITHIN, FAST, pause, works } from '../support/lab.js';

const ALL = ['sqlite', 'redis', 'postgres'];

export function recoveryOf({ violations, figures: { recovery, doubled, lost, falseReaps } }: Verdict): Finding {
  const { count, p50, p99, max } = recovery;
  return {
    figure: `recovery of ${count} jobs p50 ${p50}, p99 ${p99}, max ${max} ms; lost ${lost}, run twice ${doubled}, taken from live workers ${falseReaps}`,
    violations,
  };
}

const killed = onEach(ALL, {
  row: 1,
  name: 'workers killed with SIGKILL under load',
  short: true,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const producer = lab.producer({ url, count: lab.size(800, 6_000), each: 10, pause: 10 });
    const start = () => lab.worker({ url, take: 40 });
    const crew = await Promise.all([start(), start(), start()]);
    for (let round = 0; round < lab.size(3, 15); round++) {
      await pause(lab.size(300, 700));
      await lab.kill(crew[round % 3]!);
      crew[round % 3] = await start();
    }
    await producer.line('finished');
    await lab.drained(url);
    return recoveryOf(await lab.check(url, { backWithin: BACK_WITHIN }));
  },
});

/** A job that was lost returns to the front: it is claimed before what was added meanwhile. */
const frontOfQueue = onEach(ALL, {
  row: 1,
  name: 'the jobs of a dead worker return to the front',
  short: false,
  async run(lab, kind) {
    const url = await lab.store(kind);
    await lab.producer({ url, count: 5, each: 5, prefix: 'first-' }).exit();
    const victim = await lab.worker({ url, mode: 'hold', options: { concurrency: 5 } });
    await until('it to hold all', () => victim.lines.filter((line) => line.startsWith('holds')).length === 5);
    await lab.producer({ url, count: 20, each: 20, prefix: 'later-' }).exit();
    await lab.kill(victim);
    // It sweeps, and gets nothing to do until the five are back.
    const store = await openStore(url, { timeout: 5_000 });
    await store.configure('load', { paused: true });
    await lab.worker({ url });
    await until('the jobs to be back', async () => (await store.count('load')).active === 0);
    await store.configure('load', { paused: false });
    await store.close();
    await lab.drained(url);
    const verdict = await lab.check(url, { backWithin: BACK_WITHIN });
    const order = attemptsOf(lab.history())
      .filter(({ claims }) => claims[0] && !claims[0].process.startsWith(lab.nameOf(victim)))
      .map(({ id }) => id);
    const expected = Array.from({ length: 5 }, (_x, i) => `first-${i}`);
    if (order.slice(0, 5).join() !== expected.join())
      verdict.violations.push(`A: they were claimed in the order ${order.slice(0, 8)}`);
    return recoveryOf(verdict);
  },
});

const suspended = onEach(ALL, {
  row: 2,
  name: 'a worker suspended for three leases',
  short: false,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const rounds = 4;
    let slowest = 0;
    for (let round = 0; round < rounds; round++) {
      const sleeper = await lab.worker({ url, mode: 'hold', options: { concurrency: 1 } });
      await lab.producer({ url, count: 1, prefix: `round-${round}-` }).exit();
      await sleeper.line('holds');
      await freeze(sleeper.child.pid!, url);
      lab.died(sleeper);
      const other = await lab.worker({ url, take: 50 });
      await pause(3 * FAST.lease);
      const awake = Number(process.hrtime.bigint() / 1_000_000n);
      sleeper.signal('SIGCONT');
      const aborted = () =>
        lab
          .history()
          .find(({ verb, phase, process }) => `${verb} ${phase} ${process}` === `run note ${lab.nameOf(sleeper)}`);
      slowest = Math.max(slowest, (await until('its handler to be aborted', aborted))!.at - awake);
      await lab.drained(url);
      await Promise.all([sleeper.end('SIGTERM'), other.end('SIGTERM')]);
    }
    const verdict = await lab.check(url, { backWithin: BACK_WITHIN });
    return {
      figure: `${rounds} rounds; a handler that wakes up is aborted after ${Math.round(slowest)} ms at most; reports accepted from both 0`,
      violations: verdict.violations,
    };
  },
});

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const skewed = onEach(['redis', 'postgres'], {
  row: 4,
  name: 'clocks of workers an hour off (libfaketime)',
  short: false,
  missing: () => (works('test', '-f', FAKETIME) ? undefined : 'libfaketime is not installed'),
  async run(lab, kind) {
    const url = await lab.store(kind);
    const shifted = (by: string) => [
      'env',
      `LD_PRELOAD=${FAKETIME}`,
      `FAKETIME=${by}`,
      'FAKETIME_DONT_FAKE_MONOTONIC=1',
    ];
    const producer = lab.producer({ url, count: 1_500, each: 3, pause: 10 });
    const crew = await Promise.all(
      ['-3600s', '+0s', '+3600s'].map((by) =>
        lab.worker({ url, take: 1_200, options: { concurrency: 200 } }, shifted(by)),
      ),
    );
    const isShifted = () => new Set(lab.history().map(({ wall }) => Math.round((wall - Date.now()) / HOUR))).size === 3;
    await until('the producer to finish', () => !producer.running, { within: 90_000 });
    await lab.drained(url);
    const { violations, figures } = await lab.check(url, { backWithin: 0 });
    if (!isShifted()) violations.push('the clocks were not shifted');
    if (figures.falseReaps > 0) violations.push(`${figures.falseReaps} jobs were taken from live workers`);
    for (const program of crew) await program.end('SIGTERM');
    return { figure: `wrong reaps ${figures.falseReaps} of ${figures.accepted}`, violations };
  },
});
const HOUR = 3_600_000;

const corpse = onEach(ALL, {
  row: 5,
  name: 'fifty connections in ten processes notice one dead worker',
  short: false,
  async run(lab, kind) {
    const url = await lab.store(kind);
    const count = 200;
    await lab.producer({ url, count, each: 100 }).exit();
    // Ten processes that start keep two cores busy for longer than the usual lease of experiments.
    const lease = 5_000;
    const victim = await lab.worker({ url, mode: 'hold', options: { concurrency: count, lease } });
    await until('it to hold all', () => victim.lines.filter((line) => line.startsWith('holds')).length === count);
    const peers: Program[] = [];
    for (let i = 0; i < 10; i++) {
      peers.push(lab.program('sweeper', { url, queue: 'load', connections: 5, lease }));
    }
    await Promise.all(peers.map((peer) => peer.line('ready')));
    await lab.kill(victim);
    for (const peer of peers) peer.tell('go');
    const store = await openStore(url, { timeout: 5_000 });
    await until('all of them to be back', async () => (await store.count('load')).ready === count);
    const lost = (await store.list('load', { state: 'ready', limit: 1_000 })).jobs.filter(
      ({ crashes }) => crashes !== 1,
    );
    await store.close();
    for (const peer of peers) await peer.end('SIGTERM');
    const { violations } = await lab.check(url, { allEnded: false });
    if (lost.length > 0)
      violations.push(
        `F: ${lost.length} jobs were not returned exactly once: ${lost.map(({ id, crashes }) => `${id} with ${crashes} crashes`)}`,
      );
    return { figure: `double requeues ${lost.length} of ${count}`, violations: violations.filter(isNotWaiting) };
  },
});

/** Nobody claims again in this experiment. */
const isNotWaiting = (violation: string) => !violation.includes('nobody has claimed it since');

export const WORKERS: Experiment[] = [...killed, ...frontOfQueue, ...suspended, ...skewed, ...corpse];
