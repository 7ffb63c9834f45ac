import { startCluster } from '../../support/redis.js';
import { until } from '../../support/wait.js';
import type { Experiment } from '../support/experiment.js';
import { pause } from '../support/lab.js';

const reshard: Experiment = {
  row: 15,
  name: 'slots moved between masters under load',
  store: 'redis+cluster',
  short: false,
  async run(lab) {
    const { url, nodes, stop } = await startCluster();
    lab.onClose(stop);
    const producers = [1, 2].map(() => lab.producer({ url, count: 600, each: 2, pause: 10, insist: true }));
    await Promise.all([lab.worker({ url, take: 20 }), lab.worker({ url, take: 20 })]);
    const ids = await Promise.all(nodes.map(async ({ client }) => String(await client.call('CLUSTER', 'MYID'))));
    const slot = Number(await nodes[0]!.client.call('CLUSTER', 'KEYSLOT', 'crore:{crore:queues:load}:jobs'));
    let owner = nodes.findIndex((_node, i) => slot <= [5_460, 10_922, 16_383][i]!);
    let moves = 0;
    while (producers.some(({ running }) => running) && moves < 12) {
      const next = (owner + 1) % 3;
      await nodes[next]!.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[owner]!);
      await nodes[owner]!.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[next]!);
      for (;;) {
        const keys = (await nodes[owner]!.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[];
        if (keys.length === 0) break;
        const args = ['127.0.0.1', nodes[next]!.port, '', 0, 5_000, 'KEYS', ...keys];
        await nodes[owner]!.client.call('MIGRATE', ...args);
        await pause(5); // the slot stays split for a while: ASK and TRYAGAIN
      }
      for (const i of [next, owner, 3 - next - owner])
        await nodes[i]!.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[next]!);
      owner = next;
      moves += 1;
      await pause(300);
    }
    await Promise.all(
      producers.map((producer) => until('the producers to finish', () => !producer.running, { within: 90_000 })),
    );
    await lab.drained(url);
    const { violations, figures } = await lab.check(url);
    const errors = lab.history().flatMap((event) => ('code' in event ? [String(event.code)] : []));
    return {
      figure: `${moves} moves of the slot, errors seen by users ${errors.length} ${[...new Set(errors)].join(' ')}, lost ${figures.lost} of ${figures.accepted}`,
      violations,
    };
  },
};

export const CLUSTER_FAULTS: Experiment[] = [reshard];
