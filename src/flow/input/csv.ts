import { badFlow } from '../graph/graph-builder.js';

/**
 * Parses RFC 4180: quoted fields may contain commas, line breaks and doubled quotes. Calls back with each row and its
 * line.
 */
export function readCsv(text: string, file: string, row: (fields: string[], line: number) => void): void {
  let line = 1;
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  while (at < text.length) {
    const started = line;
    const fields: string[] = [];
    for (;;) {
      if (text[at] === '"') {
        const [field, end, lines] = quoted(text, at, file, line);
        fields.push(field);
        at = end;
        line += lines;
      } else {
        const end = plainEnd(text, at);
        const field = text.slice(at, end);
        if (field.includes('"'))
          throw badFlow(`${file}:${line}`, `a quote inside the unquoted field ${JSON.stringify(field)}`);
        fields.push(field);
        at = end;
      }
      if (text[at] !== ',') break;
      at++;
    }
    if (text[at] === '\r') at++;
    if (at < text.length && text[at] !== '\n')
      throw badFlow(`${file}:${line}`, `text after the closing quote of field ${fields.length}`);
    at++;
    line++;
    if (fields.length > 1 || fields[0] !== '') row(fields, started);
  }
}

function plainEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 44 || char === 10 || (char === 13 && text.charCodeAt(at + 1) === 10)) return at;
  }
  return text.length;
}

function quoted(text: string, from: number, file: string, line: number): [string, number, number] {
  let field = '';
  let at = from + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end < 0) throw badFlow(`${file}:${line}`, 'unclosed quote');
    field += text.slice(at, end);
    if (text[end + 1] !== '"') return [field, end + 1, field.split('\n').length - 1];
    field += '"';
    at = end + 2;
  }
}
