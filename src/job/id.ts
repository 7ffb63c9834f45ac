const HEX = Array.from({ length: 256 }, (_value, byte) => byte.toString(16).padStart(2, '0'));
const POOL = Buffer.allocUnsafe(4_096);
let used = POOL.length;
let last = 0;
let counter = 0;

/** A UUIDv7: ordered by time, and within a process also within one millisecond. */
export function newId(time: number = Date.now()): string {
  const now = Math.floor(time);
  if (used + 10 > POOL.length) {
    // Loaded with the first id, as not every process creates one.
    process.getBuiltinModule('node:crypto').randomFillSync(POOL);
    used = 0;
  }
  if (now > last) {
    last = now;
    counter = ((POOL[used]! << 8) | POOL[used + 1]!) & 0x7ff;
  } else if (++counter > 0xfff) {
    last += 1;
    counter = 0;
  }
  const stamp = last.toString(16).padStart(12, '0');
  const low = counter.toString(16).padStart(3, '0');
  const a = HEX[(POOL[used + 2]! & 0x3f) | 0x80]! + HEX[POOL[used + 3]!]!;
  const b = HEX[POOL[used + 4]!]! + HEX[POOL[used + 5]!]! + HEX[POOL[used + 6]!]!;
  const c = HEX[POOL[used + 7]!]! + HEX[POOL[used + 8]!]! + HEX[POOL[used + 9]!]!;
  used += 10;
  return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${low}-${a}-${b}${c}`;
}
