// The dashboard as middleware of express, under /jobs. Run it: node examples/dashboard/express.mjs
import { open } from 'crore';
import { dashboard, nodeListener } from 'crore/dashboard';
import express from 'express';

const crore = await open();
const app = express();
app.use(express.json());
app.use('/jobs', nodeListener(dashboard(crore, { base: '/jobs', access: 'write' })));
app.get('/', (_request, response) => response.send('hello\n'));

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/jobs/`);
});
