// One ring of payloads for every subject: 97 bytes of JSON, built before any clock starts.
const SIZE = 97;
const RING = 1000;

function build(index) {
  const value = { id: 100_000 + index, kind: 'resize', url: '' };
  value.url = `https://example.org/${'x'.repeat(SIZE)}`.slice(0, SIZE - JSON.stringify(value).length);
  return Object.freeze({ value, text: JSON.stringify(value) });
}

const ring = Array.from({ length: RING }, (_, index) => build(index));

/** The payload of the index-th job: `value` for libraries that serialize, `text` for those that take bytes. */
export function payload(index) {
  return ring[index % RING];
}

/** `count` consecutive payloads, wrapping around the ring. */
export function payloads(start, count) {
  return Array.from({ length: count }, (_, offset) => payload(start + offset));
}
