import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../proto/grpc/health/v1/health_pb.js';

/** How long a result about the store is cached, and how long the store may take to answer: a failure shows within two seconds. */
const FRESH = 500;
const PATIENCE = 1_200;
const UNREACHABLE = 'the store does not answer';

/** Whether the server accepts calls and its store answers, for checks and watchers. */
export class Health {
  /** Watchers waiting for their next check. */
  readonly #pausing = new Set<() => void>();
  #closing = false;
  /** Why the server is not ready, if it is not. */
  #problem: string | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly services: readonly string[],
    /** Resolves with the reason why the server is not ready, if it is not. */
    private readonly probe: () => Promise<string | undefined>,
  ) {}

  /** From now on, reports the server as not serving. */
  close(): void {
    this.#closing = true;
    for (const goOn of this.#pausing) goOn();
  }

  async isReady(): Promise<boolean> {
    return (await this.problem()) === undefined;
  }

  /** Why the server is not ready. Queries the store, at most twice a second and one query at a time. */
  async problem(): Promise<string | undefined> {
    if (!this.#closing && performance.now() - this.#askedAt > FRESH) {
      this.#asking ??= this.#ask().finally(() => {
        this.#asking = undefined;
      });
      await Promise.race([this.#asking, this.#patience()]);
    }
    return this.#closing ? 'the server is shutting down' : this.#problem;
  }

  routes(router: ConnectRouter): void {
    router.service(HealthService, {
      check: async ({ service }) => {
        if (!this.#knows(service)) throw new ConnectError(`unknown service '${service.slice(0, 80)}'`, Code.NotFound);
        return { status: await this.#status(service) };
      },
      watch: ({ service }, { signal }) => this.#watch(service, signal),
    });
  }

  async #ask(): Promise<void> {
    this.#problem = await this.probe().catch(() => UNREACHABLE);
    this.#askedAt = performance.now();
  }

  /** A store that takes too long is not ready, whatever it answers later. */
  #patience(): Promise<void> {
    return new Promise((resolve) => {
      const late = () => {
        if (this.#asking) this.#problem = UNREACHABLE;
        resolve();
      };
      const timer = setTimeout(late, PATIENCE).unref();
      void this.#asking?.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #knows(service: string): boolean {
    return service === '' || this.services.includes(service);
  }

  async #status(service: string): Promise<Serving> {
    if (!this.#knows(service)) return Serving.SERVICE_UNKNOWN;
    return (await this.isReady()) ? Serving.SERVING : Serving.NOT_SERVING;
  }

  /** Yields the status now and on each change, until the watcher leaves. */
  async *#watch(service: string, signal: AbortSignal): AsyncGenerator<{ status: Serving }> {
    let last: Serving | undefined;
    while (!signal.aborted) {
      const status = await this.#status(service);
      if (status !== last) yield { status };
      last = status;
      await this.#pause(signal);
    }
  }

  #pause(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const goOn = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', goOn);
        this.#pausing.delete(goOn);
        resolve();
      };
      const timer = setTimeout(goOn, FRESH);
      signal.addEventListener('abort', goOn);
      this.#pausing.add(goOn);
    });
  }
}
