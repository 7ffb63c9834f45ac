// Payloads and results above 1 KB compressed with deflate; the first byte says whether they are.
//
//   node examples/codecs/compression.mjs [sqlite:FILE | redis://…]
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { open } from 'crore';

const PLAIN = 0;
const DEFLATED = 1;
/** A few bytes can inflate to gigabytes: no value may be larger than this. */
const LARGEST = 16 * 1024 * 1024;

export const compression = {
  encode(bytes) {
    if (bytes.length <= 1024) return Buffer.concat([Buffer.of(PLAIN), bytes]);
    return Buffer.concat([Buffer.of(DEFLATED), deflateRawSync(bytes)]);
  },
  decode(bytes) {
    if (bytes[0] === PLAIN) return bytes.subarray(1);
    if (bytes[0] === DEFLATED) return inflateRawSync(bytes.subarray(1), { maxOutputLength: LARGEST });
    throw new Error(`unknown flag ${bytes[0]}`);
  },
};

const crore = await open(process.argv[2] ?? 'sqlite::memory:');
const pages = crore.queue('pages', { codec: compression });
pages.work(async (job) => job.payload.text.length);
const added = await pages.add({ text: 'a page of a book '.repeat(10_000) });
console.log(await added.finished(), 'characters');

const stored = await crore.queue('pages').get(added.id); // without the codec
console.log('stored in less than 1 KB:', stored.payload.length < 1024);
await crore.close();
