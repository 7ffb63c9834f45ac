import { isUtf8 } from 'node:buffer';
import type { Body, Bytes } from '../../../job/job.js';
import type { Content } from '../../api.js';
import { prettyJson } from './pretty-json.js';

/** Characters of a payload or result that are shown. */
const MOST = 65_536;
/** Bytes of binary data that are shown. */
const MOST_BYTES = 1_024;
/** Characters of a payload in a list. */
const MOST_IN_LINE = 160;

/** A payload or result for people: JSON pretty-printed, text as it is, other bytes as a hexadecimal dump. */
export function contentOf(body: Body): Content {
  if (typeof body === 'string') return textContent('json', prettyJson(body, MOST), Buffer.byteLength(body));
  const bytes = bufferOf(body);
  if (isReadable(bytes)) return textContent('text', bytes.toString(), bytes.length);
  return {
    kind: 'bytes',
    text: hexDump(bytes.subarray(0, MOST_BYTES)),
    size: bytes.length,
    cut: bytes.length > MOST_BYTES,
  };
}

/** The beginning of a payload in one line. */
export function lineOf(body: Body): string {
  if (typeof body !== 'string' && !isReadable(bufferOf(body))) return `encoded or binary, ${body.length} bytes`;
  const part = typeof body === 'string' ? body : bufferOf(body.subarray(0, 4 * MOST_IN_LINE)).toString();
  const line = part.slice(0, 2 * MOST_IN_LINE).replace(/\s+/g, ' ');
  return line.length > MOST_IN_LINE ? `${line.slice(0, MOST_IN_LINE)}…` : line;
}

function bufferOf(bytes: Bytes): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function textContent(kind: 'json' | 'text', text: string, size: number): Content {
  return { kind, text: text.slice(0, MOST), size, cut: text.length > MOST };
}

function isReadable(bytes: Buffer): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what makes it unreadable
  return isUtf8(bytes) && !/[\0-\x08\x0e-\x1f]/.test(bytes.subarray(0, MOST).toString());
}

function hexDump(bytes: Buffer): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const hex = [...row].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const ascii = row.toString('latin1').replace(/[^\x20-\x7e]/g, '.');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${ascii}`);
  }
  return lines.join('\n');
}
