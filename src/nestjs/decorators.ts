import { Inject, Injectable } from '@nestjs/common';
import type { ActiveJob, Settled, WorkOptions } from '../index.js';
import { CRORE, queueToken } from './tokens.js';

/** What a class with `@Processor` has to have: `process` is the handler of its queue. */
export interface JobProcessor<P = unknown, R = unknown> {
  process(job: ActiveJob<P>): R | Settled | Promise<R | Settled>;
}

export interface ProcessorSettings {
  queue: string;
  options: WorkOptions;
}

const settings = new WeakMap<object, ProcessorSettings>();

/** The connection that `CroreModule.forRoot` has opened. */
export function InjectCrore(): PropertyDecorator & ParameterDecorator {
  return Inject(CRORE);
}

/** A queue that `CroreModule.registerQueue` has registered. */
export function InjectQueue(name: string): PropertyDecorator & ParameterDecorator {
  return Inject(queueToken(name));
}

type ProcessorClass = abstract new (...args: never[]) => JobProcessor<never, unknown>;

/** Makes a provider the worker of a queue: its method `process` gets the jobs. The options are those of `queue.work`. */
export function Processor(queue: string, options: WorkOptions = {}): (target: ProcessorClass) => void {
  return (target) => {
    Injectable()(target);
    settings.set(target, { queue, options });
  };
}

/** What was said in `@Processor`, if this is a class that has it. */
export function processorSettings(target: unknown): ProcessorSettings | undefined {
  return typeof target === 'function' ? settings.get(target) : undefined;
}
