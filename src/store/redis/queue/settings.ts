import type { QueueSettings } from '../../store.js';
import type { Reply } from '../connection/client.js';
import { limitsArguments, readLimits } from '../records/arguments.js';
import { text, type View } from '../view.js';

/** The settings of a queue, which are fields of its `meta`. */
export async function settings(view: View, queue: string): Promise<QueueSettings> {
  const key = `${view.keys.queue(queue).stem}meta`;
  const fields = ['paused', 'pace', 'ordered', 'breaker', 'broken'];
  const [paused, limits, ordered, breaker, broken] = (await view.client.call('HMGET', key, ...fields)) as Reply[];
  return {
    paused: paused !== null,
    limits: readLimits(text(limits!), ordered !== null),
    ...(breaker === null ? {} : readBreaker(text(breaker!), text(broken!))),
  };
}

function readBreaker(set: string, state: string): Pick<QueueSettings, 'breaker' | 'breakerState'> {
  const [failures, pause] = set.split(' ').map(Number) as [number, number];
  const [failed = 0, until = 0] = state.split(' ', 2).map(Number);
  return { breaker: { failures, pause }, breakerState: { failed, ...(until > 0 ? { until } : {}) } };
}

export async function configure(view: View, queue: string, changes: Partial<QueueSettings>): Promise<void> {
  const { paused, limits, breaker } = changes;
  if (paused !== undefined) await view.run('pause', queue, [view.time(), paused ? '1' : '0']);
  if (limits !== undefined) await view.run('set_limits', queue, [view.time(), ...limitsArguments(limits)]);
  if (breaker !== undefined) {
    const set = breaker === null ? '' : `${breaker.failures} ${breaker.pause}`;
    await view.run('set_breaker', queue, [view.time(), set]);
  }
}
