const HEX = Array.from({ length: 256 }, (_value, byte) => byte.toString(16).padStart(2, '0'));
const POOL = Buffer.allocUnsafe(16_384);
let used = POOL.length;
let last = 0;
let counter = 0;

/** Where this many random bytes are in the pool; they are drawn in blocks, because one call for each costs more than all else in an id. */
function draw(bytes: number): number {
  if (used + bytes > POOL.length) {
    // Loaded with the first id, as not every process creates one.
    process.getBuiltinModule('node:crypto').randomFillSync(POOL);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}

/** Twelve characters that nobody can guess and nobody has had before. */
export function newNonce(): string {
  const at = draw(9);
  return POOL.toString('base64url', at, at + 9);
}

/** A UUIDv7: ordered by time, and within a process also within one millisecond. */
export function newId(time: number = Date.now()): string {
  const now = Math.floor(time);
  const at = draw(10);
  if (now > last) {
    last = now;
    counter = ((POOL[at]! << 8) | POOL[at + 1]!) & 0x7ff;
  } else if (++counter > 0xfff) {
    last += 1;
    counter = 0;
  }
  const stamp = last.toString(16).padStart(12, '0');
  const low = counter.toString(16).padStart(3, '0');
  const a = HEX[(POOL[at + 2]! & 0x3f) | 0x80]! + HEX[POOL[at + 3]!]!;
  const b = HEX[POOL[at + 4]!]! + HEX[POOL[at + 5]!]! + HEX[POOL[at + 6]!]!;
  const c = HEX[POOL[at + 7]!]! + HEX[POOL[at + 8]!]! + HEX[POOL[at + 9]!]!;
  return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${low}-${a}-${b}${c}`;
}
