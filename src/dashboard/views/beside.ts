import { checkName } from '../../engine/input/check.js';
import type { ActionResult } from '../api.js';
import { flowViews } from './flow/flows.js';
import { ringViews } from './rings.js';
import type { ViewTable } from './views.js';

export interface ViewsBeside {
  views: ViewTable;
  actions: Record<string, (asked: Record<string, unknown>) => Promise<ActionResult>>;
  close(): Promise<void>;
}

const EVERY = 1_000;

/** What is in the same database as the jobs of a store: flows and rings. Connections are opened when somebody looks. */
export function viewsBeside(url: string): ViewsBeside {
  const flows = flowViews(url);
  const rings = ringViews(url);
  return {
    views: {
      flows: { every: EVERY, read: () => flows.flows() },
      flow: { every: EVERY, read: ({ id }) => flows.flow(checkName(id, 'id of the flow')) },
      rings: { every: 2 * EVERY, read: () => rings.rings() },
      ring: { every: EVERY, read: ({ name, after }) => rings.ring(checkName(name, 'name of the ring'), after) },
    },
    actions: {
      'cancel-flow': async ({ id }) => ({
        changed: (await flows.cancelFlow(checkName(id, 'id of the flow'))) ? 1 : 0,
      }),
    },
    close: async () => {
      await Promise.all([flows.close(), rings.close()]);
    },
  };
}
