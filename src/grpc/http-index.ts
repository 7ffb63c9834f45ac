/** What the HTTP port serves, for somebody who opens it in a browser or with curl. */

/** Calls that people make by hand, with an example of their JSON. */
const EXAMPLES: readonly (readonly [call: string, what: string, json: string])[] = [
  ['Add', 'add jobs', '{"queue":"mails","jobs":[{"payload":{"to":"ada"}}]}'],
  ['Push', 'add raw tasks (base64)', '{"queue":"mails","tasks":["aGVsbG8="]}'],
  ['Get', 'jobs by id', '{"queue":"mails","ids":["order-17"]}'],
  ['List', 'jobs in a state', '{"queue":"mails","state":"ready","limit":10}'],
  ['Stats', 'queues, counts, workers', '{}'],
  ['Count', 'counts of a queue', '{"queue":"mails"}'],
  ['Queues', 'names of queues', '{}'],
  ['Workers', 'workers of a queue', '{"queue":"mails"}'],
  ['Cancel', 'cancel jobs', '{"queue":"mails","ids":["order-17"]}'],
  ['Move', 'move jobs to another queue', '{"queue":"mails","ids":["order-17"],"to":"slow-mails"}'],
  ['ListDead', 'dead jobs', '{"queue":"mails","limit":10}'],
  ['RetryDead', 'retry dead jobs', '{"queue":"mails"}'],
  ['RemoveDead', 'remove dead jobs', '{"queue":"mails"}'],
  ['Pause', 'pause a queue', '{"queue":"mails"}'],
  ['Resume', 'resume a queue', '{"queue":"mails"}'],
  ['GetLimits', 'limits of a queue', '{"queue":"mails"}'],
  ['SetLimits', 'set limits', '{"queue":"mails","limits":{"queue":{"concurrency":20}}}'],
  ['GetBreaker', 'breaker of a queue', '{"queue":"mails"}'],
  ['SetBreaker', 'set a breaker', '{"queue":"mails","breaker":{"failures":20,"pause":"1m"}}'],
  [
    'Schedule',
    'add a schedule',
    '{"name":"nightly","queue":"mails","cron":"0 4 * * *","job":{"payload":{"to":"all"}}}',
  ],
  ['ListSchedules', 'schedules', '{}'],
  ['RunSchedule', 'run a schedule now', '{"name":"nightly"}'],
  ['Unschedule', 'remove a schedule', '{"name":"nightly"}'],
  ['Obliterate', 'remove everything in a queue', '{"queue":"mails"}'],
  ['Info', 'version and limits', '{}'],
];

const WIDTH = Math.max(...EXAMPLES.map(([call]) => call.length));

/** `base` is the address by which the client reached us. */
export function indexText(base: string): string {
  const lines = EXAMPLES.map(([call, what, json]) => `  ${call.padEnd(WIDTH)}  ${what.padEnd(28)}  ${json}`);
  return `Crore job server

GET  /          the dashboard, in a browser
GET  /healthz   is the process alive
GET  /readyz    does the store answer
GET  /metrics   Prometheus text

Calls are POST requests with JSON to /crore.v1.Crore/NAME:

${lines.join('\n')}

Try it:
  curl -H 'content-type: application/json' -d '${EXAMPLES[0]![2]}' ${base}/crore.v1.Crore/Add
  curl -H 'content-type: application/json' -d '{}' ${base}/crore.v1.Crore/Stats
`;
}

export function notFoundText(path: string, base: string): string {
  const call = /^\/crore\.v1\.Crore\/(\w+)$/.exec(path)?.[1];
  const near = call && EXAMPLES.find(([name]) => name.toLowerCase() === call.toLowerCase())?.[0];
  const hint = near ? `did you mean /crore.v1.Crore/${near}?` : `GET ${base}/ lists the calls`;
  return `unknown path ${path.slice(0, 200)}: ${hint}\n`;
}
