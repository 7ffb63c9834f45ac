// The dashboard in a server of node:http, under /jobs. Run it: node examples/dashboard/node-http.mjs
import { createServer } from 'node:http';
import { open } from 'crore';
import { dashboard, nodeListener } from 'crore/dashboard';

const crore = await open();
// Only requests from this machine may do everything; others may do nothing. Ask your own log-in here.
const isLocal = (request) => /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(request.headers.get('host') ?? '');
const jobs = dashboard(crore, { base: '/jobs', access: (request) => (isLocal(request) ? 'write' : undefined) });
const listener = nodeListener(jobs);

const server = createServer((request, response) => {
  if (request.url?.startsWith('/jobs')) return listener(request, response);
  response.end('hello\n');
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/jobs/`);
});
