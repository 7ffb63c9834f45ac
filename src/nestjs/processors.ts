import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { CroreError } from '../errors.js';
import type { Crore, Queue, Worker } from '../index.js';
import { type JobProcessor, type ProcessorSettings, processorSettings } from './decorators.js';
import type { QueueRegistry } from './queues.js';

interface Found extends ProcessorSettings {
  name: string;
  processor: JobProcessor;
}

type Provider = ReturnType<DiscoveryService['getProviders']>[number];

/** Starts a worker for each class with `@Processor`, and closes workers and connection with the application. */
export class ProcessorRunner implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  #workers: Worker<unknown>[] = [];

  constructor(
    private readonly crore: Crore,
    private readonly queues: QueueRegistry,
    private readonly discovery: DiscoveryService,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    try {
      this.#start();
      await Promise.all(this.#workers.map((worker) => worker.ready()));
    } catch (error) {
      await this.crore.close(); // Nest calls no hook of an application that did not start
      throw error;
    }
  }

  /** Before other providers go away that handlers may still need; the connection stays, because others may still add jobs. */
  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  onApplicationShutdown(): Promise<void> {
    return this.crore.close();
  }

  /** Checks everything before the first worker claims a job. */
  #start(): void {
    const found = distinct(this.discovery.getProviders().flatMap(processorIn));
    const queues = found.map((one) => this.#queueOf(one));
    this.#workers = found.map(({ processor, options }, i) => queues[i]!.work((job) => processor.process(job), options));
  }

  #queueOf({ queue, name }: Found): Queue {
    const known = this.queues.get(queue);
    if (known) return known;
    const missing = `CroreModule.registerQueue('${queue}') is missing in the imports of its module`;
    throw new CroreError(
      'BAD_OPTION',
      `${name} is the processor of queue '${queue}', which is not registered: ${missing}`,
    );
  }
}

function processorIn(provider: Provider): Found[] {
  const type = classOf(provider);
  const settings = processorSettings(type);
  if (!type || !settings) return [];
  const { name } = type;
  if (provider.isTransient || !provider.isDependencyTreeStatic())
    throw new CroreError('BAD_OPTION', `${name} is a processor: it must not be transient or request-scoped`);
  const processor = provider.instance as JobProcessor;
  if (typeof processor.process !== 'function')
    throw new CroreError('BAD_OPTION', `${name} is a processor: it needs a method process(job)`);
  return [{ ...settings, name, processor }];
}

/** The class of a provider; that of its instance if a factory made it. */
function classOf({ metatype, instance }: Provider): { name: string } | undefined {
  const classes = [metatype, (instance as object | null | undefined)?.constructor];
  return classes.find(processorSettings) as { name: string } | undefined;
}

/** One processor may have several tokens; a queue may not have several processors. */
function distinct(found: readonly Found[]): Found[] {
  const byQueue = new Map<string, Found>();
  for (const one of found) {
    const other = byQueue.get(one.queue);
    if (other && other.processor !== one.processor)
      throw new CroreError('BAD_OPTION', `queue '${one.queue}' has two processors: ${other.name} and ${one.name}`);
    byQueue.set(one.queue, one);
  }
  return [...byQueue.values()];
}
