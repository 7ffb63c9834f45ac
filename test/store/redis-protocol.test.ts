import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Decoder, encode, type Reply, ServerError } from '../../dist/store/redis/connection/resp.js';

type Sample = Buffer | number | null | { error: string } | Sample[];

function write(value: Sample): Buffer {
  if (value === null) return Buffer.from('$-1\r\n');
  if (typeof value === 'number') return Buffer.from(`:${value}\r\n`);
  if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')]);
  if (Array.isArray(value)) return Buffer.concat([Buffer.from(`*${value.length}\r\n`), ...value.map(write)]);
  return Buffer.from(`-${value.error}\r\n`);
}

function plain(reply: Reply): Sample {
  if (reply instanceof ServerError) return { error: reply.message };
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const { value } = fc.letrec<{ value: Sample }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    bytes,
    fc.integer(),
    fc.constant(null),
    fc.constantFrom('ERR no', 'WRONGTYPE bad').map((error) => ({ error })),
    fc.array(tie('value'), { maxLength: 5 }),
  ),
}));

describe('the Redis protocol', () => {
  it('parses every reply correctly, wherever the network splits the bytes', () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(300), { maxLength: 8 }),
        (values, cuts) => {
          const whole = Buffer.concat(values.map(write));
          const ends = [...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b);
          const decoder = new Decoder();
          const replies: Sample[] = [];
          let from = 0;
          for (const end of ends) {
            replies.push(...decoder.push(whole.subarray(from, end)).map(plain));
            from = end;
          }
          expect(replies).toEqual(values);
        },
      ),
    );
  });

  it('encodes commands as arrays of bulk strings that decode to the same bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(bytes, fc.string({ unit: 'grapheme' })), { minLength: 1 }), (args) => {
        const expected = args.map((arg) => (typeof arg === 'string' ? Buffer.from(arg) : arg));
        expect(new Decoder().push(encode(args))).toEqual([expected]);
      }),
    );
  });

  it('rejects data that is not the Redis protocol', () => {
    expect(() => new Decoder().push(Buffer.from('HTTP/1.1 400 Bad Request\r\n'))).toThrow('not a Redis reply');
  });
});
