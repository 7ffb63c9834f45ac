import { randomBytes } from 'node:crypto';
import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { checkNumbers } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import { milliseconds } from '../job/duration.js';

/**
 * HTTP/JSON as people write it, and the JSON form of protocol buffers that the library reads and writes:
 *
 *   payloads and results    any JSON value; bytes are {"$bytes": "<base64>"}
 *   states and outcomes     "ready" instead of "STATE_READY"; both are read
 *   durations               also milliseconds, or a string such as "5m"
 *   64-bit numbers          numbers instead of strings
 *   zeros and empty lists   written, so that no count is missing
 */

const BODY = 'crore.v1.Body';
const DURATION = 'google.protobuf.Duration';
/** Strings that hold JSON text. */
const JSON_TEXTS = new Set([
  'crore.v1.Job.progress',
  'crore.v1.Worker.info',
  'crore.v1.RecordProgressRequest.progress',
  'crore.v1.JoinRequest.info',
]);
const BYTES = '$bytes';
const LONG = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64]);
const STRINGS = new Set([ScalarType.STRING, ScalarType.BYTES, ScalarType.BOOL]);

/** Reads a request. What does not fit is left as it is: the library refuses it with a message of its own. */
export function fromPlain(message: DescMessage, value: JsonValue): JsonValue {
  return mapFields(message, value, readField);
}

/** Writes a response as JSON text. Payloads are inserted as they are stored, so that no number loses digits. */
export function plainText(message: DescMessage, value: JsonValue): string {
  const raws: string[] = [];
  const mark = randomBytes(12).toString('hex');
  const write = (field: DescField, one: JsonValue): JsonValue =>
    writeField(field, one, (text) => `${mark}:${raws.push(text) - 1}`, write);
  const text = JSON.stringify(withImplicit(message, mapFields(message, value, write)));
  return text.replace(new RegExp(`"${mark}:(\\d+)"`, 'g'), (_whole, index: string) => raws[Number(index)]!);
}

type MapField = (field: DescField, value: JsonValue) => JsonValue;

/** Applies a function to every value of a message that is present, to each item of lists and maps. */
function mapFields(message: DescMessage, value: JsonValue, map: MapField): JsonValue {
  if (!isObject(value)) return value;
  const mapped: JsonObject = {};
  for (const [key, one] of Object.entries(value)) {
    const field = message.fields.find(({ name, jsonName }) => key === jsonName || key === name);
    const result = field ? mapField(field, one, map) : one;
    // A key such as __proto__ must stay a plain key, which the library refuses.
    Object.defineProperty(mapped, key, { value: result, enumerable: true, configurable: true, writable: true });
  }
  return mapped;
}

function mapField(field: DescField, value: JsonValue, map: MapField): JsonValue {
  if (field.fieldKind === 'list') return Array.isArray(value) ? value.map((one) => map(field, one)) : value;
  if (field.fieldKind === 'map') return value;
  return map(field, value);
}

function readField(field: DescField, value: JsonValue): JsonValue {
  if (JSON_TEXTS.has(`${field.parent.typeName}.${field.name}`))
    return textOf(checkNumbers(value, field.name), field.name);
  if (field.enum) return readEnum(field.enum, value);
  if (!field.message) return value;
  if (field.message.typeName === BODY) return readBody(value, field.name);
  if (field.message.typeName === DURATION) return readDuration(value, field.name);
  return mapFields(field.message, value, readField);
}

function writeField(field: DescField, value: JsonValue, raw: (text: string) => string, write: MapField): JsonValue {
  if (JSON_TEXTS.has(`${field.parent.typeName}.${field.name}`)) return writeJson(value, raw);
  if (field.enum) return writeEnum(field.enum, value);
  if (field.scalar !== undefined) return LONG.has(field.scalar) ? writeLong(value) : value;
  if (!field.message) return value;
  if (field.message.typeName === BODY) return writeBody(value, raw);
  if (field.message.typeName === DURATION) return value;
  return withImplicit(field.message, mapFields(field.message, value, write));
}

function readBody(value: JsonValue, name: string): JsonValue {
  if (isObject(value) && Object.keys(value).length === 1 && typeof value[BYTES] === 'string')
    return { data: value[BYTES] };
  return { json: textOf(checkNumbers(value, name), name) };
}

function textOf(value: JsonValue, what: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    throw new CroreError('BAD_PAYLOAD', `${what} is nested too deeply`);
  }
}

function writeBody(value: JsonValue, raw: (text: string) => string): JsonValue {
  if (!isObject(value)) return value;
  return 'data' in value ? { [BYTES]: value.data! } : writeJson(value.json ?? 'null', raw);
}

function writeJson(text: JsonValue, raw: (text: string) => string): JsonValue {
  if (typeof text !== 'string') return text;
  try {
    JSON.parse(text);
    return raw(text);
  } catch {
    return text;
  }
}

function readEnum(type: DescEnum, value: JsonValue): JsonValue {
  if (typeof value !== 'string') return value;
  const prefix = (type.sharedPrefix ?? '').toUpperCase();
  const full = `${prefix}${value.toUpperCase()}`;
  return type.values.some(({ name }) => name === full) ? full : value;
}

function writeEnum(type: DescEnum, value: JsonValue): JsonValue {
  const prefix = (type.sharedPrefix ?? '').toUpperCase();
  return typeof value === 'string' && value.startsWith(prefix) ? value.slice(prefix.length).toLowerCase() : value;
}

function readDuration(value: JsonValue, name: string): JsonValue {
  const isProto = typeof value === 'string' && /^-?\d+(\.\d{1,9})?s$/.test(value);
  return isProto || value === null ? value : `${milliseconds(value as string, name) / 1_000}s`;
}

function writeLong(value: JsonValue): JsonValue {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Numbers and lists are written even if they are zero or empty. */
function withImplicit(message: DescMessage, value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  for (const field of message.fields) {
    if (field.jsonName in value || field.oneof) continue;
    if (field.fieldKind === 'list') value[field.jsonName] = [];
    else if (field.fieldKind === 'scalar' && !field.proto.proto3Optional && !STRINGS.has(field.scalar))
      value[field.jsonName] = 0;
  }
  return value;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
