import { badFlow } from '../graph/graph-builder.js';

/**
 * Finds the positions of the keys of `nodes` in a JSON text, because JSON.parse reports no lines and drops duplicate
 * keys.
 */
export function nodeKeys(text: string): { key: string; at: number }[] {
  const keys: { key: string; at: number }[] = [];
  let depth = 0;
  let inside = false;
  let at = 0;
  while (at < text.length) {
    const char = text[at]!;
    if (char === '"') {
      const end = stringEnd(text, at);
      const isKey = text[spaceEnd(text, end)] === ':';
      if (isKey && depth === 1) inside = text.slice(at, end) === '"nodes"';
      else if (isKey && depth === 2 && inside) keys.push({ key: JSON.parse(text.slice(at, end)) as string, at });
      at = end;
      continue;
    }
    if (char === '{' || char === '[') depth++;
    if (char === '}' || char === ']') depth--;
    at++;
  }
  return keys;
}

function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function spaceEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && ' \n\r\t'.includes(text[at]!)) at++;
  return at;
}

export function lineAt(text: string, at: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i >= 0 && i < at; i = text.indexOf('\n', i + 1)) line++;
  return line;
}

/** Parses a JSON text; on an error, reports the parser's message and the line. */
export function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    const position = /position (\d+)/.exec(message)?.[1];
    const line = position === undefined ? lineAt(text, text.length) : lineAt(text, Number(position));
    throw badFlow(`${file}:${line}`, message.replace(/ in JSON at position.*$/, ''));
  }
}
