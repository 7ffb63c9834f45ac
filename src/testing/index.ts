export { type Inspection, type KillOptions, openTesting, type Testing, type TestingOptions } from './kit.js';
export type { Step } from './wire.js';
