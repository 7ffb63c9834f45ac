// Takes a picture of every page of the dashboard, light, dark and on a phone, with jobs that really ran: into screenshots/, and the two of the
// README into docs/images/.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { Fatal, open } from '../dist/index.js';
import { openRing } from '../dist/ring/index.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'crore-screenshots-'));
const store = `sqlite:${join(dir, 'crore.db')}`;
const out = join(root, 'screenshots');
const children = [];

function start(command, ...args) {
  const child = spawn(process.execPath, [join(root, 'bin', command), ...args], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

async function addressOf(server) {
  for await (const line of createInterface(server.stdout)) if (line.startsWith('Dashboard: ')) return line.slice(11);
  throw new Error('the server has not started');
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Pictures do not show where this checkout is. */
function elsewhere(error) {
  error.stack = error.stack
    .replaceAll(root, '/app/node_modules/crore/')
    .replace(/\/app\/\S*screenshots\.mjs/g, '/app/payments.js');
  return error;
}

/** An application with mails that sometimes fail, slow images, and reports that nobody works on. */
async function work(crore) {
  const mails = crore.queue('mails');
  mails.work(
    async (job) => {
      await pause(Math.random() * 120);
      if (job.payload.order % 9 === 0) throw new Error(`SMTP 550: mailbox of order ${job.payload.order} unavailable`);
      return { sent: true };
    },
    { concurrency: 8, name: 'app-1' },
  );
  const images = crore.queue('images');
  images.work(
    async (job) => {
      for (let step = 0; step < 60; step++) {
        await job.progress(step / 60);
        if (step % 10 === 0) await job.log(`scaled ${step} of 60 tiles`);
        await pause(1_000);
      }
    },
    { concurrency: 2, name: 'app-1' },
  );
  const payments = crore.queue('payments');
  payments.work(
    async (job) => {
      await job.log(`charging ${job.payload.amount} EUR for order ${job.payload.order}`);
      await job.progress({ step: 'gateway' });
      await pause(40);
      await job.log('the gateway refused');
      throw elsewhere(
        new Fatal(
          job.payload.order % 2 === 0 ? `card of customer ${job.payload.order} declined` : 'gateway timeout after 30 s',
        ),
      );
    },
    { name: 'app-1' },
  );
  await payments.addMany(
    Array.from({ length: 24 }, (_, order) => ({
      payload: { order, amount: '12.50' },
      headers: { trace: `t-${order}` },
    })),
  );
  await crore
    .queue('reports')
    .addMany(Array.from({ length: 40 }, (_, month) => ({ payload: { report: 'sales', month } })));
  for (const image of [17, 18, 19, 20]) await images.add({ image, width: 1_920 });
  await crore.schedule(
    'nightly-report',
    '0 4 * * *',
    { queue: 'reports', payload: { report: 'all' } },
    { timezone: 'Europe/Berlin' },
  );
  await crore.schedule('poll-feeds', '5m', { queue: 'feeds', payload: { feed: 'acme' } });
  let order = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 6; i++)
      void mails.add({ to: 'ada@example.org', order: order++ }, { attempts: 2, backoff: '1s' });
  }, 250);
  return () => clearInterval(timer);
}

function flow() {
  const nodes = {
    fetch: { run: 'sleep 1' },
    ...Object.fromEntries([1, 2, 3, 4].map((n) => [`clean-${n}`, { run: `sleep ${n / 2}`, needs: ['fetch'] }])),
    merge: { run: 'sleep 1', needs: ['clean-1', 'clean-2', 'clean-3', 'clean-4'] },
    train: { run: 'sleep 300', needs: ['merge'] },
    report: { run: 'true', needs: ['train', 'merge'] },
  };
  writeFileSync(join(dir, 'flow.json'), JSON.stringify({ nodes }));
  return start('crore', 'run', 'flow.json', '--store', store, '-j', '3');
}

/** A flow that fails: the first screen names it. */
async function failingFlow() {
  writeFileSync(join(dir, 'import.json'), JSON.stringify({ nodes: { load: { run: 'exit 1' } } }));
  await once(start('crore', 'run', 'import.json', '--store', store, '-q'), 'exit');
  await pause(6_000);
}

async function ring() {
  const feeds = await openRing(store, { prefix: 'feeds' });
  await feeds.add('acme', 'globex', 'initech', 'umbrella');
  await feeds.close();
  start('w8y', '-u', store, '-k', 'feeds', '-c', '-q', 'sleep', '3');
}

async function take(base, pages) {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
  const looks = [
    ['light', { viewport: { width: 1_320, height: 960 }, colorScheme: 'light' }],
    ['dark', { viewport: { width: 1_320, height: 960 }, colorScheme: 'dark' }],
    ['phone', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
  ];
  for (const [look, options] of looks) {
    const page = await (await browser.newContext(options)).newPage();
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(base + path);
      await page.locator('h1').first().waitFor();
      await pause(1_500);
      if (name === 'selected') for (const n of [1, 2, 4]) await page.getByRole('checkbox').nth(n).check();
      await page.screenshot({ path: join(out, `${name}-${look}.png`) });
    }
  }
  await browser.close();
}

mkdirSync(out, { recursive: true });
let crore;
try {
  const base = await addressOf(
    start('crore', 'serve', '--store', store, '--http', '127.0.0.1:0', '--addr', '127.0.0.1:0', '--log-level', 'error'),
  );
  crore = await open(store, { logger: false });
  const stop = await work(crore);
  flow();
  await ring();
  await pause(75_000);
  const [dead] = (await crore.queue('payments').list('dead', { limit: 1 })).jobs;
  const { flows } = await (await fetch(`${base}api/flows`)).json();
  const flowId = encodeURIComponent(flows.find(({ name }) => name === 'flow').id);
  const job = (queue, id) => `job?${new URLSearchParams({ queue, id })}`;
  const [active] = (await crore.queue('images').list('active', { limit: 1 })).jobs;
  await take(base, {
    overview: '',
    queue: 'queue?name=mails&state=done',
    job: job('payments', dead.id),
    'job-running': job('images', active?.id ?? ''),
    selected: 'queue?name=payments&state=dead',
    find: `find?${new URLSearchParams({ job: dead.id })}`,
    dead: 'dead',
    workers: 'workers',
    schedules: 'schedules',
    flows: 'flows',
    flow: `flow?id=${flowId}`,
    gantt: `flow?id=${flowId}&tab=gantt`,
    rings: 'rings',
    ring: 'ring?name=feeds%3Alist',
    'log-in': 'login',
  });
  await failingFlow();
  await take(base, { attention: '' });
  stop();
  copyFileSync(join(out, 'overview-light.png'), join(root, 'docs', 'images', 'dashboard-overview.png'));
  copyFileSync(join(out, 'job-dark.png'), join(root, 'docs', 'images', 'dashboard-job.png'));
} finally {
  for (const child of children) child.kill();
  await crore?.close();
  rmSync(dir, { recursive: true, force: true });
}
