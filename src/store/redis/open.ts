import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { RedisClient, type Reply } from './connection/client.js';
import { fromGiven, fromUrl, type GivenClients, type RedisUrl, type Source } from './connection/connect.js';
import { Keys } from './keys.js';
import { RedisStore } from './store.js';

/** The storage format this code writes; a store with a newer format is refused, an older one is read. 2: done jobs keep their last run. */
export const FORMAT = 2;
const OLDEST = 6.2;

export interface OpenRedisOptions {
  /** Time limit of a single call in milliseconds. */
  timeout: number;
  clock?: () => number;
}

export async function openRedis(url: string, parsed: RedisUrl, options: OpenRedisOptions): Promise<RedisStore> {
  const keys = new Keys(parsed.prefix);
  return openSource(await fromUrl(parsed, options.timeout), keys, redactUrl(url), { ...options, threadUrl: url });
}

/**
 * Opens a store on connections of the application. A thread cannot use those, so the main loop sends the heartbeats.
 */
export async function openGiven(clients: GivenClients, prefix: string, options: OpenRedisOptions): Promise<RedisStore> {
  return openSource(await fromGiven(clients, options.timeout), new Keys(prefix), 'the given Redis client', options);
}

async function openSource(
  source: Source,
  keys: Keys,
  shown: string,
  options: OpenRedisOptions & { threadUrl?: string },
): Promise<RedisStore> {
  const client = new RedisClient(source, shown, options.timeout);
  await client.connect();
  try {
    const warnings = await inspect(client);
    await checkFormat(client, keys);
    const skew = await measureSkew(client);
    const { subscriber } = source;
    return new RedisStore({ ...options, client, keys, subscriber, skew, warnings });
  } catch (error) {
    await client.close();
    throw error;
  }
}

async function checkFormat(client: RedisClient, keys: Keys): Promise<void> {
  const stored = await client.call('GET', keys.format);
  const found = stored === null ? 0 : Number(String(stored));
  if (Number.isInteger(found) && found < FORMAT) await writeFormat(client, keys);
  if (Number.isInteger(found) && found > FORMAT) {
    throw new CroreError(
      'STORE_NEWER',
      `${client.shown} has format ${found}, this version of Crore supports ${FORMAT}: upgrade Crore`,
    );
  }
}

/** A server that is out of memory gets the number when there is room: the next process that opens the store tries again. */
async function writeFormat(client: RedisClient, keys: Keys): Promise<void> {
  await client.call('SET', keys.format, String(FORMAT)).catch((error: CroreError) => {
    if (error.code !== 'STORE_FULL') throw error;
  });
}

async function measureSkew(client: RedisClient): Promise<number> {
  const before = Date.now();
  const [seconds, micros] = (await client.call('TIME')) as Buffer[];
  const server = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  return server - Math.round((before + Date.now()) / 2);
}

/** Refuses a server that is too old; returns warnings about settings that could lose accepted work. */
async function inspect(client: RedisClient): Promise<string[]> {
  // An account without permission does not mean an old server.
  const info = String(await client.call('INFO', 'server').catch(withoutPermission));
  const version = /redis_version:(\d+\.\d+)/.exec(info)?.[1];
  if (version !== undefined && Number(version) < OLDEST) {
    throw new CroreError('STORE_UNSUPPORTED', `${client.shown} is Redis ${version}, Crore needs ${OLDEST} or newer`);
  }
  const warnings: string[] = [];
  const [save, aof, policy] = await Promise.all(
    ['save', 'appendonly', 'maxmemory-policy'].map((name) =>
      client.call('CONFIG', 'GET', name).then(setting, () => ''),
    ),
  );
  if (save === '' && aof === 'no') warnings.push('this Redis has no persistence: a restart loses every job');
  if (policy && policy !== 'noeviction')
    warnings.push(`maxmemory-policy is ${policy}: Redis may drop jobs, use noeviction`);
  return warnings;
}

function withoutPermission(error: CroreError): string {
  if (/NOPERM/.test(error.message)) return '';
  throw error;
}

function setting(reply: Reply): string {
  return Array.isArray(reply) && reply.length > 1 ? String(reply[1]) : '';
}
