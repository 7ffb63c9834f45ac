// Graph shapes, as edges between numbered nodes; the same seed gives the same graph.
export const SHAPES = {
  chain: (n) => pairs(n - 1, (i) => [i, i + 1]),
  fan: (n) => pairs(n - 2, (i) => [0, i + 1]).concat(pairs(n - 2, (i) => [i + 1, n - 1])),
  lattice: (n) => {
    const width = Math.floor(Math.sqrt(n));
    const right = pairs(n - 1, (i) => [i, i + 1]).filter(([, to]) => to % width !== 0);
    return right.concat(pairs(n - width, (i) => [i, i + width]));
  },
  layered: (n) => {
    const random = lehmer(42);
    const width = Math.max(10, Math.floor(n / 50));
    const edges = [];
    for (let node = width; node < n; node++) {
      const layer = Math.floor(node / width) - 1;
      for (const up of new Set([0, 1, 2].map(() => layer * width + (random() % width)))) edges.push([up, node]);
    }
    return edges;
  },
};

function pairs(count, pair) {
  return Array.from({ length: Math.max(0, count) }, (_, i) => pair(i));
}

function lehmer(seed) {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
}

/** What each node needs. */
export function needsOf(n, edges) {
  const needs = Array.from({ length: n }, () => []);
  for (const [from, to] of edges) needs[to].push(`n${from}`);
  return needs;
}
