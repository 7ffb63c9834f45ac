/** How dependencies are written: '<dependent>\0<queue>\0<upstream>', where an empty queue is that of the dependent. */

export const NUL = '\0';
/** The policy of an edge from a member of a batch begins with this; the time of its reservation follows. */
export const MEMBER = 'm';

/** Fields and values of a part of a hash. */
export function pairs(flat: readonly Buffer[]): [string, string][] {
  const found: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) found.push([flat[i]!.toString(), flat[i + 1]!.toString()]);
  return found;
}

export function splitOnce(text: string): [string, string] {
  const cut = text.indexOf(NUL);
  return [text.slice(0, cut), text.slice(cut + 1)];
}

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  items.forEach((item, i) => {
    const group = groups.get(key(item));
    if (group) group.push(i);
    else groups.set(key(item), [i]);
  });
  return groups;
}
