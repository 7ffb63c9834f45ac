// Payloads and results encrypted with AES-256-GCM and rotating keys: the newest key encrypts, all of them decrypt.
//
//   node examples/codecs/encryption.mjs [sqlite:FILE | redis://…]
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { open } from 'crore';

/** Stored: the id of the key (1 byte), the nonce (12), the tag (16), the encrypted bytes. `keys` has the newest one last. */
export function encryption(keys) {
  const [newest, newestKey] = [...keys].at(-1);
  return {
    encode(bytes) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', newestKey, nonce);
      const encrypted = Buffer.concat([cipher.update(bytes), cipher.final()]);
      return Buffer.concat([Buffer.of(newest), nonce, cipher.getAuthTag(), encrypted]);
    },
    decode(bytes) {
      const key = keys.get(bytes[0]);
      if (!key) throw new Error(`there is no key ${bytes[0]}`);
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 13), { authTagLength: 16 });
      decipher.setAuthTag(bytes.subarray(13, 29));
      return Buffer.concat([decipher.update(bytes.subarray(29)), decipher.final()]);
    },
  };
}

// In an application the keys come from its secrets, not from the program.
const [june, july] = [randomBytes(32), randomBytes(32)];
const crore = await open(process.argv[2] ?? 'sqlite::memory:');
await crore.queue('mails', { codec: encryption(new Map([[1, june]])) }).add({ to: 'ada' }, { id: 'old' });

const mails = crore.queue('mails', { codec: encryption(new Map([[1, june], [2, july]])) }); // biome-ignore format: one line
const added = await mails.add({ to: 'bob' }, { id: 'new' });
mails.work(async (job) => `sent to ${job.payload.to}`);
console.log(await mails.handle('old').finished(), 'and', await added.finished());

const stored = await crore.queue('mails').get('new'); // without the codec
console.log('stored with key', stored.payload[0], 'in', stored.payload.length, 'bytes');
await crore.close();
