import { until } from '../../support/wait.js';
import type { Lab } from './lab.js';

/** How a call ended that a user made, or a worker for him. */
export const errorsIn = (lab: Lab, verb?: string) =>
  lab.history().filter((event) => /^(fail|unknown)$/.test(event.phase) && (!verb || event.verb === verb)).length;

/** Adds and works, with a fault every now and then. */
export async function underLoad(
  lab: Lab,
  url: string,
  jobs: number,
  fault: (round: number) => Promise<void>,
  rounds: number,
) {
  const producers = [1, 2].map(() => lab.producer({ url, count: jobs / 2, each: 2, pause: 8, insist: true }));
  await Promise.all([lab.worker({ url, take: 20 }), lab.worker({ url, take: 20 })]);
  for (let round = 0; round < rounds; round++) await fault(round);
  await Promise.all(
    producers.map((producer) => until('the producers to finish', () => !producer.running, { within: 90_000 })),
  );
  await lab.drained(url);
}
