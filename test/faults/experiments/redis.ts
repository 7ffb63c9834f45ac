import { open } from '../../../dist/index.js';
import { Line } from '../../support/proxy.js';
import { startSentinel } from '../../support/servers.js';
import { until } from '../../support/wait.js';
import type { Experiment } from '../support/experiment.js';
import { BACK_WITHIN, FAST, pause } from '../support/lab.js';
import { errorsIn, underLoad } from '../support/load.js';

const REDIS = { store: 'redis', short: false };

const everysec: Experiment = {
  ...REDIS,
  row: 6,
  name: 'Redis killed with SIGKILL under load, AOF everysec',
  async run(lab) {
    const redis = await lab.redis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
    const rounds = 8;
    await underLoad(
      lab,
      redis.url,
      2_000,
      async () => {
        await pause(900);
        await redis.down();
        await redis.up();
      },
      rounds,
    );
    const { violations, figures } = await lab.check(redis.url);
    return {
      figure: `${rounds} kills, lost ${figures.lost} of ${figures.accepted}, run twice ${figures.doubled}`,
      violations,
    };
  },
};

const empty: Experiment = {
  ...REDIS,
  row: 7,
  name: 'Redis restarted empty, without persistence',
  async run(lab) {
    const redis = await lab.redis();
    const warnings: string[] = [];
    const crore = await open(redis.url, { onError: (error) => void warnings.push(error.message) });
    lab.onClose(() => crore.close());
    const { url } = redis;
    const workers = await Promise.all([1, 2, 3].map(() => lab.worker({ url, take: 5 })));
    await lab.producer({ url, count: 50, each: 5, prefix: 'before-' }).exit();
    await lab.drained(url);
    await redis.down();
    await redis.up();
    await until('the store to be back', () =>
      crore
        .queue('load')
        .count()
        .then(
          () => true,
          () => false,
        ),
    );
    await lab.producer({ url, count: 300, prefix: 'after-', pause: 5 }).exit();
    await lab.drained(url);
    const { violations } = await lab.check(url, { mayLose: 50 });
    const busy = new Set(
      lab.history().flatMap((event) => (event.verb === 'run' && event.id.startsWith('after-') ? [event.process] : [])),
    );
    const stuck = workers.filter((worker) => !busy.has(lab.nameOf(worker))).length;
    if (stuck > 0) violations.push(`${stuck} workers got nothing to do any more`);
    if (!warnings.some((text) => text.includes('persist'))) violations.push('no warning about the missing persistence');
    return { figure: `stuck workers ${stuck} of ${workers.length}; warned at start`, violations };
  },
};

const failover: Experiment = {
  row: 8,
  name: 'failover by Sentinel, primary killed with SIGKILL',
  store: 'redis+sentinel',
  short: false,
  async run(lab) {
    const primary = await lab.redis();
    const replica = await lab.redis(['--replicaof', '127.0.0.1', String(primary.port)]);
    await until('replication', async () =>
      (await replica.client.info('replication')).includes('master_link_status:up'),
    );
    const sentinel = await startSentinel(lab.dir, primary.port);
    lab.onClose(() => sentinel.stop());
    const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
    const asks = replica.client.duplicate({ port: sentinel.port });
    lab.onClose(() => asks.disconnect());
    await until('the sentinel to know the replica', async () => {
      const known = (await asks.call('SENTINEL', 'REPLICAS', 'main').catch(() => [])) as unknown[];
      return known.length === 1;
    });
    let at = 0;
    const crash = async () => {
      await pause(2_000);
      at = Number(process.hrtime.bigint() / 1_000_000n);
      await primary.down();
    };
    await underLoad(lab, url, 1_200, crash, 1);
    const { violations, figures } = await lab.check(url, { mayLose: 20 });
    const next = lab.history().find((event) => event.verb === 'add' && event.phase === 'ok' && event.at > at + 50);
    const downtime = Math.round((next?.at ?? Infinity) - at);
    return {
      figure: `lost ${figures.lost} of ${figures.accepted} (not yet replicated), downtime ${downtime} ms, run twice ${figures.doubled}`,
      // A job whose end was not replicated is claimed once more: that is the lost tail, not a broken fence.
      violations: violations.filter((text) => !/claimed it after it had ended|it was ended 2 times/.test(text)),
    };
  },
};

const partition: Experiment = {
  row: 9,
  name: 'a worker cut off for several leases',
  store: 'redis',
  short: true,
  async run(lab) {
    const redis = await lab.redis();
    const line = await Line.to(redis.port);
    lab.onClose(() => line.close());
    const url = `redis://127.0.0.1:${line.port}`;
    const isolated = await lab.worker({ url, mode: 'hold', timeout: 800, options: { concurrency: 3 } });
    await lab.producer({ url: redis.url, count: 3, each: 3 }).exit();
    await until('it to hold all', () => isolated.lines.filter((text) => text.startsWith('holds')).length === 3);
    await lab.worker({ url: redis.url, take: 50 });
    line.partition();
    lab.died(isolated);
    await pause(lab.size(2, 10) * FAST.lease);
    await lab.drained(redis.url);
    line.mend();
    const { violations, figures } = await lab.check(redis.url, { overlap: 0, backWithin: BACK_WITHIN });
    return { figure: `overlap ${figures.overlapMs} ms, back after ${figures.recovery.max} ms`, violations };
  },
};

const lostReplies: Experiment = {
  ...REDIS,
  row: 10,
  name: 'replies lost after the commit, connections half open',
  async run(lab) {
    const redis = await lab.redis();
    const line = await Line.to(redis.port);
    lab.onClose(() => line.close());
    line.halfOpen = true;
    const url = `redis://127.0.0.1:${line.port}`;
    const rounds = 12;
    const fault = async (round: number) => {
      await pause(300);
      if (round % 2 === 0) line.swallowReplies();
      else line.partition();
      await pause(250);
      line.mend();
    };
    await underLoad(lab, url, 1_000, fault, rounds);
    const { violations, figures } = await lab.check(redis.url);
    return {
      figure: `${rounds} faults, duplicates 0, lost ${figures.lost} of ${figures.accepted}, run twice ${figures.doubled}`,
      violations,
    };
  },
};

const flushed: Experiment = {
  ...REDIS,
  row: 11,
  name: 'SCRIPT FLUSH and CLIENT KILL again and again',
  async run(lab) {
    const redis = await lab.redis();
    let strikes = 0;
    const strike = async () => {
      await redis.client.script('FLUSH');
      await redis.client.call('CLIENT', 'KILL', 'TYPE', strikes % 5 === 0 ? 'pubsub' : 'normal', 'SKIPME', 'yes');
      strikes += 1;
      await pause(10 + (strikes % 4) * 60);
    };
    await underLoad(lab, redis.url, 1_000, strike, 80);
    const { violations, figures } = await lab.check(redis.url);
    return {
      figure: `${strikes} strikes, errors seen by users ${errorsIn(lab, 'add')}, lost ${figures.lost} of ${figures.accepted}, run twice ${figures.doubled}`,
      violations,
    };
  },
};

export const REDIS_FAULTS: Experiment[] = [everysec, empty, failover, partition, lostReplies, flushed];
