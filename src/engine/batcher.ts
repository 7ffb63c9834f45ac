/** How many callers of a batch are answered at once when the store is remote. */
const WAVE = 50;

export interface BatchLimits {
  items: number;
  bytes: number;
  /** How many store calls may run at once. With 1, calls are synchronous, and fewer batches are better. */
  parallel: number;
}

/** The result of a batch, shared by some of its callers. */
interface Wave<Out> {
  answer: Promise<Answers<Out>>;
  resolve: (results: Answers<Out>) => void;
  reject: (error: unknown) => void;
}

type Answers<Out> = readonly (Out | Error)[];

/**
 * Combines the calls made within one turn of the event loop into one store call. Batches do not wait for each other: several may
 * be in flight, and a failure affects only the calls of its own batch. A result that is an Error rejects its own call.
 */
export class Batcher<In, Out> {
  readonly #wave: number;
  #items: In[] = [];
  #waves: Wave<Out>[] = [];
  #bytes = 0;
  #scheduled = false;
  #inFlight = 0;

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
    // Derived from one shared promise: half the cost of creating one promise per call.
    const answer = this.#waves.at(-1)!.answer.then((results) => pick(results, place));
    this.#bytes += this.size(item);
    if (this.#items.length >= this.most.items || this.#bytes >= this.most.bytes) {
      this.#flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // With nothing to wait for, calls of the same callback are enough: a single one reaches the store a turn of the loop earlier.
      if (this.#inFlight === 0) process.nextTick(() => this.#flush());
      else setImmediate(() => this.#flush());
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
    this.#inFlight += 1;
    this.send(items).then(
      (results) => {
        this.#inFlight -= 1;
        answer(waves, results);
      },
      (error) => {
        this.#inFlight -= 1;
        for (const { reject } of waves) reject(error);
      },
    );
  }
}

/**
 * Answering all callers at once would keep a hundred call-and-wait loops in lockstep and leave the store idle while they compute.
 * So callers are answered in waves, each after the calls triggered by the previous wave are in flight.
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
