import { CroreError } from '../../../errors.js';
import type { ActionResult } from '../../api.js';
import { ringViews } from '../rings.js';
import type { Parameters, ViewTable } from '../views.js';
import { flowViews } from './flows.js';

/** Flows and rings that are beside the queues of a store, as the dashboard's handler wants them. */
export interface ViewsBeside {
  views: ViewTable;
  actions: Record<string, (asked: Record<string, unknown>) => Promise<ActionResult>>;
  close(): Promise<void>;
}

const SECOND = 1_000;

/** Nothing is opened before somebody looks. */
export function viewsBeside(url: string): ViewsBeside {
  const [flows, rings] = [flowViews(url), ringViews(url)];
  return {
    views: {
      flows: { every: SECOND, read: () => flows.flows() },
      flow: { every: SECOND, read: ({ id }: Parameters) => flows.flow(id ?? '') },
      rings: { every: 2 * SECOND, read: () => rings.rings() },
      ring: { every: 2 * SECOND, read: ({ name, after }: Parameters) => rings.ring(name ?? '', after) },
    },
    actions: {
      'cancel-flow': async ({ id }) => {
        if (typeof id !== 'string') throw new CroreError('BAD_OPTION', 'id: a text is needed');
        return { changed: (await flows.cancelFlow(id)) ? 1 : 0 };
      },
    },
    close: async () => {
      await Promise.all([flows.close(), rings.close()]);
    },
  };
}
