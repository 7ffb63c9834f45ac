/** Callers of a batch that go on at once where the store is elsewhere. */
const WAVE = 50;

export interface BatchLimits {
  items: number;
  bytes: number;
  /** How many calls to the store run at once: with one, calls are synchronous and the fewest batches are the best. */
  parallel: number;
}

/** The answer to a batch, for some of its callers. */
interface Wave<Out> {
  answer: Promise<Answers<Out>>;
  resolve: (results: Answers<Out>) => void;
  reject: (error: unknown) => void;
}

type Answers<Out> = readonly (Out | Error)[];

/**
 * Calls made one by one in a turn of the event loop go out as one. Batches do not wait for each other: several may be
 * under way, and a failure concerns the calls of its own batch only. A result that is an Error rejects its own call.
 */
export class Batcher<In, Out> {
  readonly #wave: number;
  #items: In[] = [];
  #waves: Wave<Out>[] = [];
  #bytes = 0;
  #scheduled = false;

  constructor(
    private readonly send: (items: In[]) => Promise<Answers<Out>>,
    private readonly most: BatchLimits,
    private readonly size: (item: In) => number,
  ) {
    this.#wave = most.parallel > 1 ? WAVE : Number.POSITIVE_INFINITY;
  }

  add(item: In): Promise<Out> {
    const place = this.#items.push(item) - 1;
    if (place >= this.#waves.length * this.#wave || place === 0) this.#waves.push(makeWave());
    // Made from one promise for many: half the price of one for each.
    const answer = this.#waves.at(-1)!.answer.then((results) => pick(results, place));
    this.#bytes += this.size(item);
    if (this.#items.length >= this.most.items || this.#bytes >= this.most.bytes) {
      this.#flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
    return answer;
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#items.length === 0) return;
    const items = this.#items;
    const waves = this.#waves;
    this.#items = [];
    this.#waves = [];
    this.#bytes = 0;
    this.send(items).then(
      (results) => answer(waves, results),
      (error) => {
        for (const { reject } of waves) reject(error);
      },
    );
  }
}

/**
 * A hundred loops that call, wait and call again would march in step for ever, and the store stand idle while they think: so
 * they go on in waves, the next one when the calls of the last are on their way.
 */
function answer<Out>([wave, ...rest]: Wave<Out>[], results: Answers<Out>): void {
  wave?.resolve(results);
  if (rest.length > 0) setImmediate(() => setImmediate(() => answer(rest, results)));
}

function pick<Out>(results: Answers<Out>, place: number): Out {
  const result = results[place]!;
  if (result instanceof Error) throw result;
  return result;
}

function makeWave<Out>(): Wave<Out> {
  const wave = {} as Wave<Out>;
  wave.answer = new Promise((resolve, reject) => {
    wave.resolve = resolve;
    wave.reject = reject;
  });
  return wave;
}
