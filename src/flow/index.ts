export type { NodeContext } from './graph/node-spec.js';
export { Flow, type FlowOptions, flow } from './input/define.js';
export { type Asked, job, map, type Needs, type Node, node, type ResultOf, sh } from './input/nodes.js';
export { type RunOptions, type RunReport, run } from './run/library.js';
