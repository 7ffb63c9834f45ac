/** The names of a ring's keys. They are a contract with every other program on the ring, so they are built only here. */
export interface RingKeys {
  readonly list: string;
  /** The prefix of lock names, followed by the item. */
  readonly lockStart: string;
  lock(item: Buffer): Buffer;
  /** Who holds the lock, for people who look on; only our own programs write it. */
  holder(item: Buffer): Buffer;
}

/** Rings that are in use, by the time they were last seen: see `REGISTER`. */
export const RINGS = 'crore:rings';
/** Not below the ring's own prefix: whatever a lock is called there, it cannot be the name of a lock. */
const HOLDERS = 'crore:ring-holder:';

export function ringKeys(prefix: string, lockName: string): RingKeys {
  const start = prefix === '' || prefix.endsWith(':') ? prefix : `${prefix}:`;
  return keysOf(`${start}list`, `${start}${lockName}:`);
}

export function keysOf(list: string, lockStart: string): RingKeys {
  const head = Buffer.from(lockStart);
  const holderHead = Buffer.from(`${HOLDERS}${lockStart}`);
  return {
    list,
    lockStart,
    lock: (item) => Buffer.concat([head, item]),
    holder: (item) => Buffer.concat([holderHead, item]),
  };
}
