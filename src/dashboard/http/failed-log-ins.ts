/** Failed log-ins from an address within a minute after which its others are refused for the rest of it. */
const MOST_FAILURES = 20;
const MINUTE = 60_000;
/** Addresses that are remembered; the one that failed first is forgotten for another. */
const MOST_ADDRESSES = 10_000;

/** Counts wrong tokens by the address they came from, so that who guesses delays nobody else. */
export class FailedLogIns {
  /** In the order of their first failure. */
  readonly #known = new Map<string, { count: number; until: number }>();

  constructor(private readonly now: () => number) {}

  get size(): number {
    return this.#known.size;
  }

  areTooMany(address: string): boolean {
    this.#forget();
    return (this.#known.get(networkOf(address))?.count ?? 0) >= MOST_FAILURES;
  }

  add(address: string): void {
    this.#forget();
    const network = networkOf(address);
    const known = this.#known.get(network);
    if (known) known.count += 1;
    else this.#known.set(network, { count: 1, until: this.now() + MINUTE });
  }

  /** Those whose minute is over come first. */
  #forget(): void {
    for (const [network, { until }] of this.#known) {
      if (until > this.now() && this.#known.size < MOST_ADDRESSES) return;
      this.#known.delete(network);
    }
  }
}

/** Somebody with an IPv6 address has a whole network of them: its first half counts. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [front = '', back] = address.split('%')[0]!.split('::');
  const groups = front === '' ? [] : front.split(':');
  const rest = back ? back.split(':') : [];
  const zeros = back === undefined ? 0 : 8 - groups.length - rest.length;
  return [...groups, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...rest].slice(0, 4).join(':');
}
