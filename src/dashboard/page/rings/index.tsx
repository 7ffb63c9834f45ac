export { RingPage } from './ring-page.js';
export { RingsPage } from './rings-page.js';
