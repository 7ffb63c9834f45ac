import type { Reply } from '../../store/redis/connection/resp.js';
import type { HolderText } from '../redis/announcer.js';
import type { Link } from '../redis/connection.js';
import { keysOf, RINGS, type RingKeys } from '../redis/keys.js';
import {
  type InspectedHolder,
  type InspectedItem,
  type InspectedRing,
  LOOKED,
  lookedEach,
  type RingInspector,
} from './inspector.js';

/** Timeout of every call, in milliseconds. */
const PATIENCE = 5_000;
/** Most rings that are read from the registry; it has no more. */
const MOST = 1_000;
/** An empty ring that nobody has used for this long is not shown, in milliseconds. */
const RECENT = 24 * 3_600_000;

interface KnownRing {
  keys: RingKeys;
  seen: number;
}

/** Rings that our own programs use: they register them. Other lists are never read. */
export class RedisInspector implements RingInspector {
  constructor(private readonly link: Link) {}

  async rings(most: number): Promise<{ rings: InspectedRing[]; more: boolean }> {
    const known = [...(await this.registry()).values()];
    const each = lookedEach(Math.min(known.length, most));
    const found = await Promise.all(known.slice(0, most).map((ring) => this.look(ring, each)));
    const rings = found.filter((ring) => ring !== undefined);
    return { rings: rings.sort((a, b) => (a.list < b.list ? -1 : 1)), more: known.length > most };
  }

  async ring(list: string): Promise<InspectedRing | undefined> {
    const known = (await this.registry()).get(list);
    return known && this.look({ ...known, seen: Date.now() }, LOOKED);
  }

  async items(list: string, from: number, count: number): Promise<InspectedItem[]> {
    const known = (await this.registry()).get(list);
    if (!known) return [];
    const items = (await this.call('LRANGE', list, String(from), String(from + count - 1))) as Buffer[];
    return this.described(known.keys, items, await this.tokens(known.keys, items));
  }

  async held(list: string, most: number): Promise<InspectedItem[]> {
    const known = (await this.registry()).get(list);
    if (!known) return [];
    const items = unique(((await this.call('LRANGE', list, String(-LOOKED), '-1')) as Buffer[]).reverse());
    const tokens = await this.tokens(known.keys, items);
    const locked = items.flatMap((item, i) => (tokens[i] ? [[item, tokens[i]] as const] : [])).slice(0, most);
    return this.described(
      known.keys,
      locked.map(([item]) => item),
      locked.map(([, token]) => token),
    );
  }

  close(): void {
    this.link.close();
  }

  /** By list, the ring seen last first. */
  private async registry(): Promise<Map<string, KnownRing>> {
    const reply = (await this.call('ZREVRANGE', RINGS, '0', String(MOST - 1), 'WITHSCORES')) as Buffer[];
    const rows = reply.flat() as Buffer[]; // the client for Sentinel and Cluster returns pairs
    const known = new Map<string, KnownRing>();
    for (let i = 0; i < rows.length; i += 2) {
      const ring = parse(rows[i]!);
      if (isRing(ring) && !known.has(ring[0]))
        known.set(ring[0], { keys: keysOf(...ring), seen: Number(String(rows[i + 1])) });
    }
    return known;
  }

  /** Undefined if the key is no list any more. */
  private async look({ keys, seen }: KnownRing, most: number): Promise<InspectedRing | undefined> {
    try {
      const [length, tail] = (await Promise.all([
        this.call('LLEN', keys.list),
        this.call('LRANGE', keys.list, String(-most), '-1'),
      ])) as [number, Buffer[]];
      if (length === 0 && Date.now() - seen > RECENT) return undefined;
      const locked = (await this.tokens(keys, tail)).filter((token) => token).length;
      return { list: keys.list, items: length, locked, ...(tail.length < length ? { looked: tail.length } : {}) };
    } catch (error) {
      if ((error as { code?: string }).code === 'STORE_CORRUPT') return undefined;
      throw error;
    }
  }

  private async tokens(keys: RingKeys, items: readonly Buffer[]): Promise<(Buffer | null)[]> {
    if (items.length === 0) return [];
    return (await this.call('MGET', ...items.map((item) => keys.lock(item)))) as (Buffer | null)[];
  }

  private described(
    keys: RingKeys,
    items: readonly Buffer[],
    tokens: readonly (Buffer | null)[],
  ): Promise<InspectedItem[]> {
    return Promise.all(
      items.map(async (item, i) => {
        const token = tokens[i];
        return token ? { item, holder: await this.holder(keys, item, token) } : { item };
      }),
    );
  }

  /** What is said about another token is out of date. */
  private async holder(keys: RingKeys, item: Buffer, token: Buffer): Promise<InspectedHolder> {
    const [left, text] = await Promise.all([
      this.call('PTTL', keys.lock(item)),
      this.call('GET', keys.holder(item)).catch(() => null),
    ]);
    const holder = { token, until: Date.now() + Math.max(0, Number(left)) };
    const said = parse(text) as Partial<HolderText> | undefined;
    if (said?.token !== token.toString('hex')) return holder;
    const { host, pid, since, resting } = said;
    return { ...holder, host, pid, since, ...(resting ? { resting } : {}) };
  }

  private call(...args: (string | Buffer)[]): Promise<Reply> {
    return this.link.call(args, PATIENCE);
  }
}

function parse(text: Reply): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

function isRing(value: unknown): value is [list: string, lockStart: string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}

/** Equal items share one lock. */
function unique(items: readonly Buffer[]): Buffer[] {
  return [...new Map(items.map((item) => [item.toString('latin1'), item])).values()];
}
