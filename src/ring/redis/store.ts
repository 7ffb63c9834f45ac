import type { Reply } from '../../store/redis/connection/resp.js';
import type { LockedItem, LockState, Look, RingLayout, RingStore } from '../store.js';
import { Announcer } from './announcer.js';
import type { Link } from './connection.js';
import { type RingKeys, ringKeys } from './keys.js';
import { REFRESH, RELEASE, TAKE } from './scripts.js';

const STATES: Record<number, LockState> = { 1: 'kept', 0: 'gone', [-1]: 'foreign' };
const PAGE = 1000;

/** A ring in the documented Redis keys. Scripts are sent as text: calls are rare, and SCRIPT FLUSH cannot break them. */
export class RedisRing implements RingStore {
  private readonly keys: RingKeys;
  private readonly expiry: string;
  private readonly announcer: Announcer;

  constructor(
    private readonly link: Link,
    layout: RingLayout,
  ) {
    this.keys = ringKeys(layout.prefix, layout.lockName);
    this.expiry = String(Math.round(layout.expiryMs));
    this.announcer = new Announcer(link, this.keys, layout.expiryMs);
  }

  async take(token: Buffer, from: number, count: number, within: number): Promise<Look> {
    const { list, lockStart } = this.keys;
    const args = ['EVAL', TAKE, '1', list, lockStart, token, this.expiry, String(from), String(count)];
    const [length, next, item] = (await this.link.call(args, within)) as [number, number, Buffer?];
    if (length > 0) this.announcer.register();
    if (item) this.announcer.taken({ item, token });
    return { length, next, item };
  }

  async refresh(held: readonly LockedItem[], within: number): Promise<LockState[]> {
    const locks = held.map(({ item }) => this.keys.lock(item));
    const tokens = held.map(({ token }) => token);
    const args = ['EVAL', REFRESH, String(locks.length), ...locks, this.expiry, ...tokens];
    const states = (await this.link.call(args, within)) as number[];
    states.forEach((state, i) => {
      if (STATES[state] === 'kept') this.announcer.refreshed(held[i]!);
    });
    return states.map((state) => STATES[state] ?? 'foreign');
  }

  async retake({ item, token }: LockedItem, within: number): Promise<boolean> {
    const reply = await this.link.call(['SET', this.keys.lock(item), token, 'NX', 'PX', this.expiry], within);
    if (reply !== null) this.announcer.refreshed({ item, token });
    return reply !== null;
  }

  async release({ item, token }: LockedItem, rest: number, within: number): Promise<boolean> {
    this.announcer.released({ item, token }, rest);
    const args = ['EVAL', RELEASE, '1', this.keys.lock(item), token, String(Math.round(rest))];
    return (await this.link.call(args, within)) === 1;
  }

  async add(items: readonly Buffer[], within: number): Promise<number> {
    let length: Reply = 0;
    for (let at = 0; at < items.length; at += PAGE) {
      length = await this.link.call(['RPUSH', this.keys.list, ...items.slice(at, at + PAGE)], within);
    }
    if (items.length > 0) this.announcer.register();
    return Number(length);
  }

  async remove(item: Buffer, within: number): Promise<number> {
    return Number(await this.link.call(['LREM', this.keys.list, '0', item], within));
  }

  async items(within: number): Promise<Buffer[]> {
    const all: Buffer[] = [];
    for (let at = 0; ; at += PAGE) {
      const page = await this.link.call(['LRANGE', this.keys.list, String(at), String(at + PAGE - 1)], within);
      all.push(...(page as Buffer[]));
      if ((page as Buffer[]).length < PAGE) return all;
    }
  }

  close(): void {
    this.announcer.close();
    this.link.close();
  }
}
