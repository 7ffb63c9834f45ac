export type { Step } from './faulty-store.js';
export { type Inspection, type KillOptions, openTesting, type Testing, type TestingOptions } from './kit.js';
