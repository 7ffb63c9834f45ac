// The dashboard in hono, under /jobs; hono runs on many platforms, here on Node. Run it: node examples/dashboard/hono.mjs
import { createServer } from 'node:http';
import { open } from 'crore';
import { dashboard, nodeListener } from 'crore/dashboard';
import { Hono } from 'hono';

const crore = await open();
const jobs = dashboard(crore, { base: '/jobs', access: 'write' });
const app = new Hono();
app.get('/', (context) => context.text('hello\n'));
app.all('/jobs', (context) => jobs(context.req.raw));
app.all('/jobs/*', (context) => jobs(context.req.raw));

// `@hono/node-server` does this as well.
const server = createServer(nodeListener(async (request) => app.fetch(request)));
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/jobs/`);
});
