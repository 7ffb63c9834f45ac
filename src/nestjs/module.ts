import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata, type Type } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { type Crore, type OpenOptions, open } from '../index.js';
import { ProcessorRunner } from './processors.js';
import { type QueueRegistration, QueueRegistry } from './queues.js';
import { CRORE, queueToken } from './tokens.js';

/** The URL of the store, and the options of `open`. */
export interface CroreModuleOptions extends OpenOptions {
  url?: string;
}

export interface CroreModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider, 'inject'> {
  // biome-ignore lint/suspicious/noExplicitAny: what is injected is known to the factory alone, as in all modules of Nest
  useFactory: (...injected: any[]) => CroreModuleOptions | Promise<CroreModuleOptions>;
}

const OPTIONS = Symbol('CroreModuleOptions');

/**
 * Crore in a Nest application. The package needs no decorator syntax: its classes are provided by factories, and decorators are called
 * as the functions they are.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class CroreModule {
  /** Opens the connection, for all modules. It is closed with the application, after the workers. */
  static forRoot(options: CroreModuleOptions = {}): DynamicModule {
    return CroreModule.forRootAsync({ useFactory: () => options });
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: CroreModuleAsyncOptions): DynamicModule {
    return {
      module: CroreModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [{ provide: OPTIONS, useFactory, inject }, ...SHARED],
      exports: [CRORE, QueueRegistry],
    };
  }

  /** Registers queues by name, or with the options of `crore.queue`, for `@InjectQueue` and `@Processor`. */
  static registerQueue(...queues: (string | QueueRegistration)[]): DynamicModule {
    const providers = queues.map((queue) => queueProvider(typeof queue === 'string' ? { name: queue } : queue));
    return { module: moduleClass(), providers, exports: providers };
  }
}
Module({})(CroreModule);

/**
 * A class for each call. Nest 10 compares dynamic modules of one class by their text, which is the same for two sets of options: it would
 * drop one of them without a word, and a codec with it.
 */
function moduleClass(): Type {
  class RegisteredQueues {}
  Module({})(RegisteredQueues);
  return RegisteredQueues;
}

const SHARED: FactoryProvider[] = [
  { provide: CRORE, useFactory: ({ url, ...options }: CroreModuleOptions) => open(url, options), inject: [OPTIONS] },
  { provide: QueueRegistry, useFactory: (crore: Crore) => new QueueRegistry(crore), inject: [CRORE] },
  {
    provide: ProcessorRunner,
    useFactory: (crore: Crore, queues: QueueRegistry, discovery: DiscoveryService) =>
      new ProcessorRunner(crore, queues, discovery),
    inject: [CRORE, QueueRegistry, DiscoveryService],
  },
];

function queueProvider(queue: QueueRegistration): FactoryProvider {
  return {
    provide: queueToken(queue.name),
    useFactory: (registry: QueueRegistry) => registry.register(queue),
    inject: [QueueRegistry],
  };
}
