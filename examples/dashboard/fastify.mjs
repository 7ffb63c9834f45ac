// The dashboard in fastify, under /jobs. Run it: node examples/dashboard/fastify.mjs
import { open } from 'crore';
import { dashboard, nodeListener } from 'crore/dashboard';
import Fastify from 'fastify';

const crore = await open();
const listener = nodeListener(dashboard(crore, { base: '/jobs', access: 'write' }));
const app = Fastify();
app.get('/', async () => 'hello\n');
app.register(async (jobs) => {
  // The dashboard reads requests itself.
  jobs.removeAllContentTypeParsers();
  jobs.addContentTypeParser('*', (_request, _payload, done) => done(null));
  const handle = (request, reply) => {
    reply.hijack();
    return listener(request.raw, reply.raw);
  };
  jobs.all('/jobs', handle);
  jobs.all('/jobs/*', handle);
});

console.log(`${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}/jobs/`);
