export { FlowPage } from './flow-page.js';
export { FlowsPage } from './flows-page.js';
