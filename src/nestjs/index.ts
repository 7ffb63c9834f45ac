export { InjectCrore, InjectQueue, type JobProcessor, Processor } from './decorators.js';
export { CroreModule, type CroreModuleAsyncOptions, type CroreModuleOptions } from './module.js';
export type { QueueRegistration } from './queues.js';
export { CRORE, queueToken } from './tokens.js';
