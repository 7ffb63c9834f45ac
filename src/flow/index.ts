export {
  type Asked,
  Flow,
  type FlowOptions,
  flow,
  job,
  map,
  type Needs,
  type Node,
  node,
  type ResultOf,
  sh,
} from './define.js';
export { type RunOptions, type RunReport, run } from './library.js';
export type { NodeContext } from './spec.js';
