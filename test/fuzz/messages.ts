import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import fc from 'fast-check';

/** Random JSON for a message: mostly of the right shape, with values at the edges of what they may be. */
export function jsonOf(message: DescMessage, depth = 3): fc.Arbitrary<Record<string, unknown>> {
  const fields = message.fields.map((field) => [field.jsonName, fieldOf(field, depth)] as const);
  const known = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
  const odd = fc.dictionary(fc.constantFrom('__proto__', 'constructor', 'queue', 'jobs', 'x'), wrong, { maxKeys: 1 });
  return fc
    .tuple(known, fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, odd))
    .map(([one, more]) => ({ ...one, ...more }));
}

const wrong = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    -1,
    1e308,
    '',
    'x',
    [],
    {},
    [[]],
    true,
    '\0',
    '1970-01-01T00:00:00Z',
    '-1s',
    '315576000000s',
  ),
  fc.string({ maxLength: 10 }),
);

function fieldOf(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const right = one(field, depth);
  const many = field.fieldKind === 'list' ? fc.array(right, { maxLength: 3 }) : right;
  const whole = field.fieldKind === 'map' ? fc.dictionary(fc.string({ maxLength: 4 }), right, { maxKeys: 3 }) : many;
  return fc.oneof({ weight: 8, arbitrary: whole }, { weight: 1, arbitrary: wrong });
}

function one(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const message = 'message' in field ? field.message : undefined;
  if (message) return depth > 0 ? (special(message) ?? jsonOf(message, depth - 1)) : fc.constant({});
  const options = 'enum' in field ? field.enum : undefined;
  if (options) return fc.constantFrom<unknown>(...options.values.map(({ name }) => name), 99, -1);
  return scalarOf('scalar' in field ? field.scalar : undefined);
}

function special({ typeName }: DescMessage): fc.Arbitrary<unknown> | undefined {
  switch (typeName) {
    case 'google.protobuf.Duration':
      return fc.constantFrom('0s', '0.001s', '1s', '-1s', '315576000000s', 'x');
    case 'google.protobuf.Timestamp':
      return fc.constantFrom('1970-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', 'now');
    case 'google.protobuf.Struct':
    case 'google.protobuf.Value':
      return fc.jsonValue({ maxDepth: 3 });
    default:
      return undefined;
  }
}

function scalarOf(scalar: ScalarType | undefined): fc.Arbitrary<unknown> {
  switch (scalar) {
    case ScalarType.STRING:
      return fc.oneof(
        fc.constantFrom('q', 'a', '', '\0', '{', '__proto__', 'x'.repeat(600)),
        fc.string({ maxLength: 12, unit: 'binary' }),
      );
    case ScalarType.BYTES:
      return fc.base64String({ maxLength: 24 });
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return fc
        .oneof(fc.double(), fc.constantFrom('NaN', 'Infinity'))
        .map((x) => (typeof x === 'number' && !Number.isFinite(x) ? 0 : x));
    default:
      return fc.oneof(fc.integer(), fc.constantFrom('9223372036854775807', '-1', 0, 1, 4_294_967_295));
  }
}
