import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, it } from 'vitest';
import { Fatal, open } from '../../dist/index.js';
import { startServer } from '../grpc/support/server.js';
import { until } from '../support/wait.js';

/** The value of the sample with these labels, or undefined. */
function sampleOf(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const line = text
    .split('\n')
    .find(
      (one) => (one.startsWith(`${name}{`) || one.startsWith(`${name} `)) && wanted.every((part) => one.includes(part)),
    );
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

const URLS: [string, () => string][] = [
  ['sqlite', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=metrics`],
];

describe.each(URLS)('metrics on %s', (_name, url) => {
  it('count what this process does, and show what the store has', async () => {
    await using crore = await open(url(), { logger: false, onError: () => {} });
    const queue = crore.queue<string>('m "quoted"\\\nname');
    await queue.addMany(['a', 'b', 'fatal', 'again'].map((payload) => ({ payload, backoff: 1 })));
    await queue.add('a', { id: 'twice', delay: '1h' });
    await queue.add('a', { id: 'twice' });
    const worker = queue.work(async (job) => {
      if (job.payload === 'fatal') throw new Fatal('no');
      if (job.payload === 'again' && job.attempt === 1) throw new Error('once');
    });
    await until('all have ended', async () => {
      const { done, dead } = await queue.count();
      return done === 3 && dead === 1;
    });
    const text = await crore.metrics();
    const label = { queue: 'm \\"quoted\\"\\\\\\nname' };
    expect(sampleOf(text, 'crore_jobs', { ...label, state: 'done' })).toBe(3);
    expect(sampleOf(text, 'crore_jobs', { ...label, state: 'scheduled' })).toBe(1);
    expect(sampleOf(text, 'crore_workers', label)).toBe(1);
    expect(sampleOf(text, 'crore_adds_total', { ...label, outcome: 'created' })).toBe(5);
    expect(sampleOf(text, 'crore_adds_total', { ...label, outcome: 'duplicate' })).toBe(1);
    expect(sampleOf(text, 'crore_claims_total', label)).toBe(5);
    expect(sampleOf(text, 'crore_outcomes_total', { ...label, outcome: 'done' })).toBe(3);
    expect(sampleOf(text, 'crore_outcomes_total', { ...label, outcome: 'retry' })).toBe(1);
    expect(sampleOf(text, 'crore_outcomes_total', { ...label, outcome: 'dead' })).toBe(1);
    expect(sampleOf(text, 'crore_wait_seconds_count', label)).toBe(5);
    expect(sampleOf(text, 'crore_run_seconds_count', label)).toBe(5);
    expect(sampleOf(text, 'crore_run_seconds_bucket', { ...label, le: '+Inf' })).toBe(5);
    expect(sampleOf(text, 'crore_store_call_seconds_count', { verb: 'claim' })).toBeGreaterThan(0);
    expect(sampleOf(text, 'crore_event_loop_delay_p99_seconds')).toBeGreaterThanOrEqual(0);
    await worker.close();
    await queue.obliterate();
  });
});

describe('examples/monitoring', () => {
  const folder = new URL('../../examples/monitoring/', import.meta.url);
  const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

  it('uses metrics that exist, and rules that promtool accepts', async () => {
    await using crore = await open('sqlite::memory:');
    const known = [...(await crore.metrics()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!);
    for (const file of ['alerts.yaml', 'grafana.json']) {
      const used = [...read(file).matchAll(/\bcrore_[a-z0-9_]+/g)].map(([name]) =>
        name.replace(/_(bucket|sum|count)$/, ''),
      );
      expect(used.length).toBeGreaterThan(4);
      expect(used.filter((name) => !known.includes(name))).toEqual([]);
    }
    const rules = spawnSync('promtool', ['check', 'rules', fileURLToPath(new URL('alerts.yaml', folder))]);
    expect(`${rules.stderr}${rules.stdout}`).toContain('SUCCESS');
    const { panels } = JSON.parse(read('grafana.json')) as { panels: { title: string; targets: { expr: string }[] }[] };
    for (const { title, targets } of panels) expect(targets.length, title).toBeGreaterThan(0);
  });
});

describe('GET /metrics', () => {
  it('is text that promtool accepts, with hostile names of queues', async () => {
    const server = await startServer({ grace: 100 });
    try {
      const names = ['plain', 'quo"te', 'back\\slash', 'new\nline', 'ünïcode 💥', '}{,="'];
      for (const name of names) await server.store.push(name, [Buffer.from('x')]);
      const answer = await fetch(`${server.http}/metrics`);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        200,
        expect.stringContaining('version=0.0.4'),
      ]);
      const text = await answer.text();
      expect(sampleOf(text, 'crore_queues')).toBe(names.length);
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
      expect(`${stdout}${stderr}`).toBe('');
      expect(status).toBe(0);
      expect((await fetch(`${server.http}/metrics`, { method: 'POST' })).status).toBe(405);
    } finally {
      await server.close();
    }
  });
});
