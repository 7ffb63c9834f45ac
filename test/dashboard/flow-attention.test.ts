import { expect, it } from 'vitest';
import type { OverviewView } from '../../dist/dashboard/api.js';
import type { FlowState } from '../../dist/flow/journal/journal.js';
import { openJournal } from '../../dist/flow/journal/open.js';
import { STORES } from '../support/stores.js';
import { until } from '../support/wait.js';
import { startDashboard } from './support/dashboard.js';

it.each(STORES)(
  'the first screen on %s names flows that failed or lost their runner, until they are run again',
  async (_name, fresh) => {
    const store = await fresh();
    const run = async (id: string, file: string, state: FlowState) => {
      const journal = await openJournal(store.url);
      const place = { host: 'here', pid: 1 };
      await journal.begin({ id, name: file, file, state: 'running', size: 1, created: Date.now(), ...place }, '');
      await journal.finish(state, { failed: state === 'failed' ? 1 : 0 });
      await journal.close();
    };
    await run('1', 'bad.yaml', 'failed');
    await run('2', 'good.yaml', 'failed');
    await run('3', 'good.yaml', 'done');
    await run('4', 'cut.yaml', 'interrupted');
    const dashboard = await startDashboard(store.url);
    const flows = async () =>
      (await dashboard.get<OverviewView>('api/overview')).attention.filter(({ kind }) => kind === 'flow');
    const found = await until('the flows are read', async () => {
      const some = await flows();
      return some.length > 0 ? some : undefined;
    });
    expect(found).toEqual([
      {
        kind: 'flow',
        urgent: true,
        flow: { id: '1', name: 'bad.yaml', file: 'bad.yaml' },
        text: 'This flow failed (one node).',
      },
      {
        kind: 'flow',
        urgent: false,
        flow: { id: '4', name: 'cut.yaml', file: 'cut.yaml' },
        text: 'The runner of this flow was stopped or killed.',
      },
    ]);
    await run('5', 'bad.yaml', 'done');
    await until('the flow that was run again is gone', async () => (await flows()).length === 1);
    await dashboard.close();
    await store.stop();
  },
);
