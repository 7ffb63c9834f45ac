import { CroreError } from '../../errors.js';

/**
 * The keys of a queue: its plain list, and the prefix of every companion key, whose hash tag is the key of that list.
 */
export interface QueueKeys {
  list: string;
  stem: string;
  /** Pub/sub channel of the queue. */
  channel: string;
}

export class Keys {
  readonly #known = new Map<string, QueueKeys>();

  constructor(readonly prefix: string) {
    if (prefix === '' || /[{}\0]/.test(prefix)) {
      throw new CroreError('BAD_URL', `prefix '${prefix}' must not be empty or contain braces or NUL`);
    }
  }

  queue(name: string): QueueKeys {
    const known = this.#known.get(name);
    if (known) return known;
    const list = `${this.prefix}:queues:${encodeName(name)}`;
    const stem = `${this.prefix}:{${list}}:`;
    const keys = { list, stem, channel: `${stem}signals` };
    if (this.#known.size > 10_000) this.#known.clear();
    this.#known.set(name, keys);
    return keys;
  }

  /** Names of the queues in use, and when each was last registered: both in one slot. */
  get registry(): [names: string, times: string] {
    const names = `${this.prefix}:registry`;
    return [names, `${this.prefix}:{${names}}:used`];
  }

  /** Names of schedules and their queues. */
  get schedules(): string {
    return `${this.prefix}:schedules`;
  }

  /** Pub/sub channel of a process for what is leased to its waiting workers. */
  deliveries(origin: string): string {
    return `${this.prefix}:deliveries:${origin}`;
  }

  get format(): string {
    return `${this.prefix}:format`;
  }
}

/**
 * Braces would move the hash tag and the percent sign would make the encoding ambiguous; everything else stays
 * readable.
 */
export function encodeName(name: string): string {
  return name.replace(/[{}%]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
