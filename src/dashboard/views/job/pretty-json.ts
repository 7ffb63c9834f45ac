/** A token of JSON: a string, a bracket or separator, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Indents JSON text without parsing it into values: numbers keep all their digits, and keys their order. Stops a little after `most`
 * characters.
 */
export function prettyJson(json: string, most: number): string {
  let out = '';
  let depth = 0;
  let previous = '';
  for (const [token] of json.matchAll(TOKEN)) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    const isEmpty = closes && (previous === '{' || previous === '[');
    const breaks = previous === '{' || previous === '[' || previous === ',' || closes;
    if (breaks && !isEmpty) out += `\n${'  '.repeat(Math.max(0, depth))}`;
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
    previous = token;
    if (out.length > most) break;
  }
  return out;
}
