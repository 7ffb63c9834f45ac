/** The names of a ring's keys. They are a contract with every other program on the ring, so they are built only here. */
export interface RingKeys {
  readonly list: string;
  /** The prefix of lock names, followed by the item. */
  readonly lockStart: string;
  lock(item: Buffer): Buffer;
}

export function ringKeys(prefix: string, lockName: string): RingKeys {
  const start = prefix === '' || prefix.endsWith(':') ? prefix : `${prefix}:`;
  const lockStart = `${start}${lockName}:`;
  const head = Buffer.from(lockStart);
  return { list: `${start}list`, lockStart, lock: (item) => Buffer.concat([head, item]) };
}
