import { hostCalls } from '../host-process.js';
import type { HandlerSetup } from './handler-messages.js';
import { HandlerRunner } from './handler-runner.js';

/** The program of a process that runs a handler. */
await hostCalls(new HandlerRunner(JSON.parse(process.argv[2]!) as HandlerSetup));
