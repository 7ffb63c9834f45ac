import { CroreError } from '../../errors.js';
import { showItem } from '../../process/log.js';
import {
  type InspectedItem,
  type InspectedRing,
  openInspector,
  type RingInspector,
} from '../../ring/inspect/inspector.js';
import { parseUrl } from '../../ring/url.js';
import type { RingItemRow, RingRow, RingsView, RingView } from '../api.js';

/** The rings beside a store: in the same Redis database, SQLite file or schema on PostgreSQL. */
export interface RingViews {
  rings(): Promise<RingsView>;
  /** `name` is the name of the ring's list, `after` a position from an earlier page. Undefined if there is no such ring. */
  ring(name: string, after?: string): Promise<RingView | undefined>;
  close(): Promise<void>;
}

/** Most rings in the list, and items of a page. */
const [MOST, PAGE] = [200, 200];
/** Longest text of an item. */
const LONGEST = 300;

export function ringViews(url: string): RingViews {
  return new InspectorViews(url);
}

class InspectorViews implements RingViews {
  #inspector: Promise<RingInspector> | undefined;

  constructor(private readonly url: string) {}

  async rings(): Promise<RingsView> {
    const found = await (await this.#open())?.rings(MOST);
    return { now: Date.now(), rings: (found?.rings ?? []).map(rowOf), more: found?.more ?? false };
  }

  async ring(name: string, after?: string): Promise<RingView | undefined> {
    const from = positionOf(after);
    const inspector = await this.#open();
    const ring = await inspector?.ring(name);
    if (!inspector || !ring) return undefined;
    const held = from === 0 ? { held: (await inspector.held(name, PAGE)).map(itemRow) } : {};
    const items = await inspector.items(name, from, PAGE);
    const next = from + items.length;
    const more = items.length === PAGE && next < ring.items ? { after: String(next) } : {};
    return { now: Date.now(), ring: rowOf(ring), ...held, items: items.map(itemRow), ...more };
  }

  async close(): Promise<void> {
    const inspector = await this.#inspector?.catch(() => undefined);
    this.#inspector = undefined;
    inspector?.close();
  }

  /** Undefined for a store that cannot have rings: behind a job server, or in memory. */
  async #open(): Promise<RingInspector | undefined> {
    if (/^grpcs?:/.test(this.url) || this.url === 'sqlite::memory:') return undefined;
    this.#inspector ??= openInspector(parseUrl(this.url.replace(/^sqlite:\/\/(?=\/)/, 'sqlite:')));
    return this.#inspector;
  }
}

function positionOf(after: string | undefined): number {
  if (after === undefined || after === '') return 0;
  if (!/^\d{1,12}$/.test(after)) throw new CroreError('BAD_OPTION', `after: '${after.slice(0, 40)}' is not a position`);
  return Number(after);
}

function rowOf({ list, ...counts }: InspectedRing): RingRow {
  return { name: list, ...counts };
}

function itemRow({ item, holder }: InspectedItem): RingItemRow {
  const text = showItem(item, LONGEST);
  return holder ? { item: text, holder: { ...holder, token: holder.token.toString('hex') } } : { item: text };
}
