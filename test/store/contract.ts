import { describe } from 'vitest';
import { testAdding } from './contract/adding.js';
import { testBatches } from './contract/batches.js';
import { testBreaker } from './contract/breaker.js';
import { testChanging } from './contract/changing.js';
import { testChildren } from './contract/children.js';
import { testClock } from './contract/clock.js';
import { testDependencies } from './contract/dependencies.js';
import { testEvents } from './contract/events.js';
import { testHistory } from './contract/history.js';
import { testPace } from './contract/limits.js';
import { testMoving } from './contract/moving.js';
import { testNotes } from './contract/notes.js';
import { testOrderedGroups } from './contract/ordered-groups.js';
import { testByHand } from './contract/raw-tasks.js';
import { testLooking } from './contract/reading.js';
import { testRetention } from './contract/retention.js';
import { testSchedules } from './contract/schedules.js';
import { testSettling } from './contract/settling.js';
import { type StoreUnderTest, setUpBench } from './contract/setup.js';
import { testCarrying } from './contract/sources.js';
import { testTasks } from './contract/tasks.js';
import { testUnique } from './contract/unique.js';
import { testWorkers } from './contract/workers.js';

export type { StoreUnderTest };

/** The contract of every store, one file per subject. */
export function testStore(store: StoreUnderTest): void {
  describe(`store contract: ${store.name}`, () => {
    const bench = setUpBench(store);
    if (store.withoutRaw === undefined) testByHand(bench);
    testAdding(bench);
    testCarrying(bench);
    testTasks(bench);
    testSettling(bench);
    testNotes(bench);
    testUnique(bench);
    testWorkers(bench);
    testChanging(bench);
    testDependencies(bench);
    testChildren(bench);
    testBatches(bench);
    testRetention(bench);
    testClock(bench);
    testLooking(bench);
    testPace(bench);
    testOrderedGroups(bench);
    testBreaker(bench);
    testMoving(bench);
    testEvents(bench);
    if (store.withoutRaw === undefined) testHistory(bench);
    testSchedules(bench, store.firesSchedules);
  });
}
