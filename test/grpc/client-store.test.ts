import { openStore } from '../../dist/store/open.js';
import { type StoreUnderTest, testStore } from '../store/contract.js';
import { testReports } from '../store/reports.js';
import { startServer } from './support/server.js';

/** The whole store contract, through a server: a client with its own engine must not see a difference. */
const behindServer: StoreUnderTest = {
  name: 'behind a server',
  withoutRaw: 'tasks by hand are for those who have the store itself',
  firesSchedules: true,
  open: async (clock) => {
    // The suite's clock stands still between steps, so the server must not sweep by itself.
    const server = await startServer({ clock, sweep: 3_600_000, grace: 0 });
    const store = await openStore(`grpc://${server.address}`, { timeout: 10_000, clock });
    return {
      store,
      close: async () => {
        await store.close();
        await server.close();
      },
    };
  },
};

testStore(behindServer);
testReports(behindServer);
