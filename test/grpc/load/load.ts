import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { open } from '../../../dist/index.js';
import { Program } from '../../support/processes.js';
import { RedisServer } from '../../support/redis.js';
import { until } from '../../support/wait.js';
import { ServeProcess } from '../support/process.js';

export interface LoadSetup {
  connections: number;
  streams: number;
  /** Of Lakh, and of crore.v1. */
  queues: number;
  /** One connection in so many reads slowly. */
  slowEvery: number;
  processes: number;
  /** Jobs per second. */
  rate: number;
  /** How many intervals of how many milliseconds. */
  intervals: number;
  interval: number;
  say?: (line: string) => void;
}

/** One interval. Times in milliseconds, memory in MB. */
export interface Sample {
  jobs: number;
  p50: number;
  p99: number;
  rss: number;
  descriptors: number;
  /** Workers that read and got no job in this interval, and those that never got one. */
  idle: number;
  starved: number;
  ended: number;
}

export interface LoadResult {
  samples: Sample[];
  descriptors: { before: number; after: number };
  added: number;
  /** Whether the server still answers. */
  alive: boolean;
}

interface Report extends Pick<Sample, 'jobs' | 'idle' | 'starved' | 'ended'> {
  latencies: Record<string, number>;
}

const CLIENTS = fileURLToPath(new URL('./clients.mjs', import.meta.url));
const BASE = 1.1;
/** Descriptors that a server opens with its first worker and keeps: connections to the store, its heartbeat thread. */
export const SPARE = 20;

/** A job server on Redis under many connections and streams, with jobs at a steady rate. */
export async function runLoad(setup: LoadSetup): Promise<LoadResult> {
  const cleanups: (() => unknown)[] = [];
  try {
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    const server = await ServeProcess.start([
      '--store',
      redis.url,
      '--addr',
      '127.0.0.1:0',
      '--http',
      '127.0.0.1:0',
      '--log-level',
      'silent',
    ]);
    cleanups.push(() => server.end());
    const pid = server.child.pid!;
    const before = descriptorsOf(pid);
    const clients = startClients(setup, Number(server.address.split(':')[1]));
    cleanups.push(() => Promise.all(clients.map((program) => program.end())));
    const isOpen = (program: Program) => program.lines.includes('open') || !program.running;
    await until('all streams to be accepted', () => clients.every(isOpen), { within: 180_000, every: 100 });
    const producer = new Producer(setup);
    await producer.start(server.address);
    cleanups.push(() => producer.stop());
    const samples: Sample[] = [];
    for (let i = 0; i < setup.intervals && server.running; i++) {
      await new Promise((resolve) => setTimeout(resolve, setup.interval));
      const sample = {
        ...merge(await Promise.all(clients.map(ask))),
        rss: rssOf(pid),
        descriptors: descriptorsOf(pid),
      };
      samples.push(sample);
      setup.say?.(lineOf(i + 1, sample));
    }
    await producer.stop();
    await Promise.all(clients.map((program) => program.end()));
    await until('the descriptors to return', () => !server.running || descriptorsOf(pid) <= before + SPARE, {
      within: 30_000,
      every: 100,
    }).catch(() => {});
    const alive = server.running && (await fetch(`${server.http}/healthz`)).ok;
    return { samples, descriptors: { before, after: descriptorsOf(pid) }, added: producer.added, alive };
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

function startClients({ connections, streams, processes, queues, slowEvery }: LoadSetup, port: number): Program[] {
  return Array.from({ length: processes }, (_x, i) => {
    const share = { connections: connections / processes, streams: streams / processes };
    return new Program(CLIENTS, { port, queues, slowEvery, first: i * share.connections, ...share });
  });
}

/** Adds as many jobs to a queue at once as it has workers, queue after queue. */
class Producer {
  added = 0;
  #over = false;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly setup: LoadSetup) {}

  async start(address: string): Promise<void> {
    const crore = await open(`grpc://${address}`, { onError: () => {}, timeout: 20_000 });
    this.#running = this.#loop(crore).finally(() => crore.close());
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#running;
  }

  async #loop(crore: Awaited<ReturnType<typeof open>>): Promise<void> {
    const { queues, streams, rate } = this.setup;
    const each = Math.ceil(streams / (queues * 2));
    const options = { keep: { count: 0 }, reservation: '60s' };
    let next = performance.now();
    for (let n = 0; !this.#over; n++) {
      const name = `${n % 2 ? 'crore' : 'lakh'}-${Math.floor(n / 2) % queues}`;
      const payload = () => [`at=${Date.now()}`];
      await crore.queue(name).addMany(Array.from({ length: each }, () => ({ payload: payload(), ...options })));
      this.added += each;
      next += (each / rate) * 1_000;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
  }
}

async function ask(program: Program): Promise<Report> {
  const seen = program.lines.length;
  program.tell('report');
  const answer = () => program.lines.slice(seen).find((line) => line.startsWith('report '));
  const line = await until('a report', answer, { within: 60_000 });
  return JSON.parse(line!.slice('report '.length)) as Report;
}

function merge(reports: readonly Report[]): Omit<Sample, 'rss' | 'descriptors'> {
  const sum = (key: 'jobs' | 'idle' | 'starved' | 'ended') => reports.reduce((total, report) => total + report[key], 0);
  const latencies = new Map<number, number>();
  for (const report of reports) {
    for (const [bucket, n] of Object.entries(report.latencies)) {
      latencies.set(Number(bucket), (latencies.get(Number(bucket)) ?? 0) + n);
    }
  }
  const [p50, p99] = [percentileOf(latencies, 0.5), percentileOf(latencies, 0.99)];
  return { jobs: sum('jobs'), idle: sum('idle'), starved: sum('starved'), ended: sum('ended'), p50, p99 };
}

function percentileOf(buckets: ReadonlyMap<number, number>, share: number): number {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  let left = sorted.reduce((sum, [, n]) => sum + n, 0) * share;
  for (const [bucket, n] of sorted) {
    left -= n;
    if (left <= 0) return Math.round(BASE ** bucket);
  }
  return 0;
}

export function lineOf(n: number, { jobs, p50, p99, rss, descriptors, idle, starved, ended }: Sample): string {
  return `| ${n} | ${jobs} | ${p50} | ${p99} | ${rss} | ${descriptors} | ${idle} | ${starved} | ${ended} |`;
}

/** Whether the last third is like the first: latency within twice, memory within a quarter, descriptors within a twentieth. */
export function isFlat(samples: readonly Sample[]): boolean {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const mean = (part: readonly Sample[], key: keyof Sample) =>
    part.reduce((sum, one) => sum + one[key], 0) / part.length;
  const grew = (key: keyof Sample) =>
    mean(samples.slice(-third), key) / Math.max(1, mean(samples.slice(0, third), key));
  return grew('p99') <= 2 && grew('rss') <= 1.25 && grew('descriptors') <= 1.05;
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function rssOf(pid: number): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024);
}
