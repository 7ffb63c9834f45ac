import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../proto/grpc/health/v1/health_pb.js';

/** Whether the server serves, for whoever asks or watches. */
export class Health {
  readonly #watchers = new Set<() => void>();
  #serving = true;

  constructor(private readonly services: readonly string[]) {}

  get serving(): boolean {
    return this.#serving;
  }

  set(serving: boolean): void {
    this.#serving = serving;
    for (const tell of this.#watchers) tell();
  }

  routes(router: ConnectRouter): void {
    router.service(HealthService, {
      check: ({ service }) => {
        if (!this.#knows(service)) throw new ConnectError(`unknown service '${service.slice(0, 80)}'`, Code.NotFound);
        return { status: this.#status(service) };
      },
      watch: ({ service }, { signal }) => this.#watch(service, signal),
    });
  }

  #knows(service: string): boolean {
    return service === '' || this.services.includes(service);
  }

  #status(service: string): Serving {
    if (!this.#knows(service)) return Serving.SERVICE_UNKNOWN;
    return this.#serving ? Serving.SERVING : Serving.NOT_SERVING;
  }

  /** The status now and at each change, until the watcher leaves. */
  async *#watch(service: string, signal: AbortSignal): AsyncGenerator<{ status: Serving }> {
    let last: Serving | undefined;
    while (!signal.aborted) {
      const status = this.#status(service);
      if (status !== last) yield { status };
      last = status;
      await new Promise<void>((resolve) => {
        const tell = () => {
          this.#watchers.delete(tell);
          signal.removeEventListener('abort', tell);
          resolve();
        };
        this.#watchers.add(tell);
        signal.addEventListener('abort', tell);
        if (this.#status(service) !== last) tell();
      });
    }
  }
}
