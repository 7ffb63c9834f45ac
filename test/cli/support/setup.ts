import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type Crore, open, type Queue } from '../../../dist/index.js';
import type { TestStore } from '../../support/stores.js';
import { Line } from './crore.js';

/** What the tests of commands work with. */
export interface Desk {
  store: TestStore;
  /** The command line and the library on the same store. */
  line: Line;
  crore: Crore;
  /** A queue that no other test uses. */
  name: string;
  queue: Queue;
}

/** One store for the tests of this block, and a new queue before each of them; `give` receives everything. */
export function setUpDesk(prefix: string, fresh: () => Promise<TestStore>, give: (desk: Desk) => void): void {
  let store: TestStore;
  let crore: Crore;
  let count = 0;

  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { onError: () => {} });
  });
  beforeEach(() => {
    const name = `${prefix}-${count++}`;
    give({ store, crore, name, line: new Line(store.url), queue: crore.queue(name) });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });
}
