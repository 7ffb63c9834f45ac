import type { EventPage, EventStore, EventType, StoredEvent } from '../store.js';
import { unpack } from './records/msgpack.js';
import type { Registry } from './registry.js';
import { text, type View } from './view.js';

const FIELDS = 5;

/** Events of jobs, in a stream of each queue that somebody reads. */
export class RedisEvents implements EventStore {
  constructor(
    private readonly view: View,
    private readonly registry: Registry,
  ) {}

  async record(queue: string, ms: number): Promise<string> {
    await this.registry.add(queue);
    return text((await this.view.run('record_events', queue, [this.view.time(), String(ms)])).reply);
  }

  async read(queue: string, after: string, limit: number): Promise<EventPage> {
    const { reply } = await this.view.run('read_events', queue, [this.view.time(), after, String(limit)]);
    const [gap, skip, ...fields] = reply as [number, number, ...Buffer[]];
    const events: StoredEvent[] = [];
    for (let i = 0; i < fields.length; i += FIELDS) readEntry(fields.slice(i, i + FIELDS), events);
    return { gap: gap === 1, events: events.slice(skip, skip + limit) };
  }
}

/** Appends the events of an entry: one, or the same event of many jobs. See lua/lib/events.lua. */
function readEntry([entry, kind, ids, time, note]: Buffer[], events: StoredEvent[]): void {
  const position = text(entry!);
  const [, count, type] = /^(?:(\d+)\+)?(.*)$/.exec(text(kind!)) as unknown as [string, string?, EventType?];
  const [at, info] = [Number(text(time!)), text(note!)];
  if (count === undefined) {
    events.push({ position, type: type!, id: text(ids!), at, info });
    return;
  }
  unpack(ids!, (start, end, i, all) => {
    const id = ids!.toString('utf8', start, end);
    events.push({ position: i === all - 1 ? position : `${position}-${i + 1}`, type: type!, id, at, info });
  });
}
