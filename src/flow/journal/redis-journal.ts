import { randomBytes } from 'node:crypto';
import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { RedisClient, type Reply } from '../../store/redis/connection/client.js';
import { fromUrl, type RedisUrl } from '../../store/redis/connection/connect.js';
import type { NodeEnd } from '../graph/node-spec.js';
import {
  decodeEnds,
  decodeRunning,
  encodeEnds,
  encodeRunning,
  type FlowInfo,
  type FlowState,
  HOLD,
  type Journal,
  type Memory,
  type RunnerReport,
  type WatchedFlow,
} from './journal.js';

/**
 * A flow has a few keys in one slot: `info` (a hash: info, state, cancel, and the runner's last report: counts, running),
 * `definition`, `ends` (a list of strings) and `holder` (the runner's token, which expires unless it is renewed). Each
 * script lists them in that order.
 */
const WRITE = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] ~= redis.call('HGET', KEYS[3], 'last') then
  redis.call('RPUSH', KEYS[2], ARGV[2])
  redis.call('HSET', KEYS[3], 'last', ARGV[3])
end
return 1`;
const HOLD_ON = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[3] then redis.call('HSET', KEYS[2], 'counts', ARGV[3], 'running', ARGV[4]) end
return redis.call('HGET', KEYS[2], 'cancel') == '1' and 'cancel' or 'held'`;
const FINISH = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'info', ARGV[2], 'state', ARGV[3])
redis.call('HDEL', KEYS[2], 'counts', 'running')
redis.call('DEL', KEYS[1])
return 1`;
const TAKE_OVER = `if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and ARGV[4] ~= '1' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'state', 'running', 'cancel', '0', 'info', ARGV[3])
redis.call('HDEL', KEYS[2], 'counts', 'running')
return 1`;
const CANCEL = `local state = redis.call('HGET', KEYS[2], 'state')
if not state or state == 'done' or state == 'cancelled' then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[2], 'cancel', '1')
else redis.call('HSET', KEYS[2], 'state', 'cancelled') end
return 1`;

export async function openRedisJournal(url: string, parsed: RedisUrl, timeout: number): Promise<RedisJournal> {
  const client = new RedisClient(await fromUrl(parsed, timeout), redactUrl(url), timeout);
  await client.connect();
  return new RedisJournal(client, parsed.prefix);
}

export class RedisJournal implements Journal {
  readonly #token = randomBytes(9).toString('base64url');
  #id = '';
  #writes = 0;
  /** When each flow was created. */
  #created = new Map<string, number>();

  constructor(
    private readonly client: RedisClient,
    private readonly prefix: string,
  ) {}

  async list(): Promise<FlowInfo[]> {
    const ids = ((await this.client.call('SMEMBERS', this.#registry)) as Buffer[]).map(String);
    const infos = await Promise.all(ids.map((id) => this.get(id)));
    return infos.filter((info) => info !== undefined).sort((a, b) => a.created - b.created);
  }

  async get(id: string): Promise<FlowInfo | undefined> {
    const [info, state] = (await this.client.call(
      'HMGET',
      this.#key(id, 'info'),
      'info',
      'state',
    )) as (Buffer | null)[];
    if (!info || !state) return undefined;
    return { ...(JSON.parse(info.toString()) as FlowInfo), state: state.toString() as FlowState };
  }

  async begin(info: FlowInfo, definition: string): Promise<void> {
    this.#id = info.id;
    await this.client.call('SET', this.#key(info.id, 'holder'), this.#token, 'PX', String(HOLD));
    await this.client.call('SET', this.#key(info.id, 'definition'), definition);
    await this.client.call('HSET', this.#key(info.id, 'info'), 'info', JSON.stringify(info), 'state', info.state);
    await this.client.call('SADD', this.#registry, info.id);
  }

  async takeOver(id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean> {
    const info = JSON.stringify({ ...(await this.get(id)), ...by });
    const args = [this.#token, String(HOLD), info, dead ? '1' : '0'];
    const taken = (await this.#script(TAKE_OVER, id, ['holder', 'info'], ...args)) === 1;
    if (taken) this.#id = id;
    return taken;
  }

  async definition(id: string): Promise<string | undefined> {
    const text = (await this.client.call('GET', this.#key(id, 'definition'))) as Buffer | null;
    return text?.toString();
  }

  async ends(id: string): Promise<NodeEnd[]> {
    return (await this.endsAfter(id, 0)).ends;
  }

  /** The write number makes a retry after a lost reply harmless. */
  async write(ends: readonly NodeEnd[]): Promise<void> {
    const mark = `${this.#token}:${++this.#writes}`;
    const reply = await this.#script(WRITE, this.#id, ['holder', 'ends', 'info'], this.#token, encodeEnds(ends), mark);
    if (reply !== 1) throw new CroreError('LEASE_LOST', 'another runner has taken over this flow');
  }

  async hold(report?: () => RunnerReport): Promise<'held' | 'cancel' | 'lost'> {
    const { counts, running } = report?.() ?? {};
    const said = counts ? [JSON.stringify(counts), encodeRunning(running ?? [])] : [];
    const args = [this.#token, String(HOLD), ...said];
    return String(await this.#script(HOLD_ON, this.#id, ['holder', 'info'], ...args)) as 'held';
  }

  async finish(state: FlowState, counts: Record<string, number>): Promise<void> {
    const known = await this.get(this.#id);
    const info = JSON.stringify({ ...known, state, counts, finished: Date.now() });
    await this.#script(FINISH, this.#id, ['holder', 'info'], this.#token, info, state);
  }

  async cancel(id: string): Promise<boolean> {
    return (await this.#script(CANCEL, id, ['holder', 'info'])) === 1;
  }

  async isHeld(id: string): Promise<boolean> {
    return (await this.client.call('EXISTS', this.#key(id, 'holder'))) === 1;
  }

  async forget(id: string): Promise<void> {
    for (const part of ['holder', 'definition', 'ends', 'info']) await this.client.call('UNLINK', this.#key(id, part));
    await this.client.call('SREM', this.#registry, id);
  }

  /** Reads all flows once and then only new ones and the newest: when a flow was created does not change. */
  async watchAll(most: number): Promise<WatchedFlow[]> {
    const ids = ((await this.client.call('SMEMBERS', this.#registry)) as Buffer[]).map(String);
    const fresh = ids.filter((id) => !this.#created.has(id));
    const infos = await Promise.all(fresh.map((id) => this.get(id)));
    this.#created = new Map(ids.flatMap((id) => (this.#created.has(id) ? [[id, this.#created.get(id)!]] : [])));
    for (const info of infos) if (info) this.#created.set(info.id, info.created);
    const newest = [...this.#created].sort((a, b) => b[1] - a[1]).slice(0, most);
    const found = await Promise.all(newest.map(([id]) => this.#look(id, 'info', 'state', 'counts')));
    return found.filter((flow) => flow !== undefined);
  }

  watch(id: string): Promise<(WatchedFlow & Pick<RunnerReport, 'running'>) | undefined> {
    return this.#look(id, 'info', 'state', 'counts', 'running');
  }

  async #look(id: string, ...fields: string[]): Promise<(WatchedFlow & Pick<RunnerReport, 'running'>) | undefined> {
    const [values, held] = await Promise.all([
      this.client.call('HMGET', this.#key(id, 'info'), ...fields) as Promise<(Buffer | null)[]>,
      this.isHeld(id),
    ]);
    const [info, state, counts, running] = values.map((value) => value?.toString());
    if (!info || !state) return undefined;
    return {
      info: { ...(JSON.parse(info) as FlowInfo), state: state as FlowState },
      held,
      ...(counts ? { counts: JSON.parse(counts) as RunnerReport['counts'] } : {}),
      running: decodeRunning(running),
    };
  }

  async endsAfter(id: string, position: number): Promise<{ ends: NodeEnd[]; position: number }> {
    const ends: NodeEnd[] = [];
    for (let at = position; ; ) {
      const page = (await this.client.call('LRANGE', this.#key(id, 'ends'), String(at), String(at + 499))) as Buffer[];
      for (const body of page) for (const end of decodeEnds(JSON.parse(body.toString()))) ends.push(end);
      at += page.length;
      if (page.length < 500) return { ends, position: at };
    }
  }

  async recall(name: string): Promise<Map<string, Memory>> {
    const memories = new Map<string, Memory>();
    let cursor = '0';
    do {
      const [next, fields] = (await this.client.call('HSCAN', this.#memories(name), cursor, 'COUNT', '1000')) as [
        Buffer,
        Buffer[],
      ];
      cursor = next.toString();
      for (let i = 0; i < fields.length; i += 2)
        memories.set(fields[i]!.toString(), JSON.parse(fields[i + 1]!.toString()) as Memory);
    } while (cursor !== '0');
    return memories;
  }

  async remember(name: string, memories: readonly [string, Memory][]): Promise<void> {
    for (let i = 0; i < memories.length; i += 500) {
      const fields = memories.slice(i, i + 500).flatMap(([node, memory]) => [node, JSON.stringify(memory)]);
      await this.client.call('HSET', this.#memories(name), ...fields);
    }
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  get #registry(): string {
    return `${this.prefix}:flows`;
  }

  #key(id: string, part: string): string {
    return `${this.prefix}:{flow:${id}}:${part}`;
  }

  #memories(name: string): string {
    return `${this.prefix}:flow-memories:${name}`;
  }

  #script(script: string, id: string, parts: string[], ...args: string[]): Promise<Reply> {
    return this.client.call('EVAL', script, String(parts.length), ...parts.map((part) => this.#key(id, part)), ...args);
  }
}
