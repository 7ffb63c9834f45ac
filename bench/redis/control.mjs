// What a measurement asks the Redis server: an empty one for each run, its memory, and its CPU time.
import { connect } from '../subjects/root.mjs';

export function redisControl(server) {
  const client = connect(server);
  return {
    async freshPlace() {
      await client.flushall('SYNC');
      return { ...server, queue: 'bench' };
    },
    /** Without its client buffers. */
    async heldBytes() {
      const info = await read(client, 'memory');
      return info('used_memory') - info('mem_clients_normal');
    },
    busyMicroseconds: () => busyMicroseconds(client),
    close: () => client.quit(),
  };
}

export async function busyMicroseconds(client) {
  const info = await read(client, 'cpu');
  return (info('used_cpu_user') + info('used_cpu_sys')) * 1e6;
}

async function read(client, section) {
  const text = await client.info(section);
  return (field) => {
    const match = new RegExp(`^${field}:([0-9.]+)`, 'm').exec(text);
    if (!match) throw new Error(`INFO ${section} has no ${field}`);
    return Number(match[1]);
  };
}
