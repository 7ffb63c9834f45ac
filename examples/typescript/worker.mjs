// A worker and a producer on a job server. Run: node worker.mjs grpc://127.0.0.1:50051 10
import { open } from 'crore';

const [, , url = 'grpc://127.0.0.1:50051', jobs = '10'] = process.argv;
const crore = await open(url);
const mails = crore.queue('mails');

mails.work((job) => ({ sent: job.payload.to }), { concurrency: 10 });

const handles = await mails.addMany(Array.from({ length: Number(jobs) }, (_x, i) => ({ payload: { to: `user${i}` } })));
const results = await Promise.all(handles.map((handle) => handle.finished({ timeout: '30s' })));
console.log(`${results.length} mails sent, the last to ${results.at(-1).sent}`);
await crore.close();
