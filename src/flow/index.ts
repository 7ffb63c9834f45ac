export { Flow, type FlowOptions, flow } from './define.js';
export { type RunOptions, type RunReport, run } from './library.js';
export { type Asked, job, map, type Needs, type Node, node, type ResultOf, sh } from './nodes.js';
export type { NodeContext } from './spec.js';
