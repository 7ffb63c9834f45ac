import type { EventPage, EventStore, EventType, StoredEvent } from '../store.js';
import type { Reply } from './connection/client.js';
import type { Registry } from './registry.js';
import { text, type View } from './view.js';

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
    const [gap, ...fields] = reply as Reply[];
    const events: StoredEvent[] = [];
    for (let i = 0; i < fields.length; i += 5) {
      const [position, type, id, at, info] = fields.slice(i, i + 5).map(text) as string[];
      events.push({ position: position!, type: type as EventType, id: id!, at: Number(at), info: info! });
    }
    return { gap: gap === 1, events };
  }
}
