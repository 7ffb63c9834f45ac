import { describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import type { WorqrOptions } from '../../dist/worqr/index.js';
import { freeze } from '../support/freeze.js';
import { Program } from '../support/processes.js';
import { until } from '../support/wait.js';
import { LIVELY, SHORT, STORES, workshop } from './support.js';

describe.each(STORES)('Worqr in several processes on %s', (store) => {
  const { place, make, worker, cleanups } = workshop();
  const start = async (setup: { url: string; queue: string; mode?: string; take?: number; options: WorqrOptions }) => {
    const program = new Program('worqr', setup);
    cleanups.push(() => program.end());
    await program.line('ready');
    return program;
  };
  const heldBy = (program: Program) => program.lines.filter((line) => line.startsWith('held'));

  it('kill -9: only the tasks of the dead worker return, to the front, in order, once', async () => {
    const url = await place[store]();
    const producer = make(url);
    await producer.enqueue('q', [...'abcdefgh']);
    const dead = await start({ url, queue: 'q', take: 3, options: SHORT });
    await until('three tasks are held', () => heldBy(dead).length === 3);
    const alive = await start({ url, queue: 'q', take: 2, options: LIVELY });
    await until('two tasks are held', () => heldBy(alive).length === 2);
    await dead.end('SIGKILL');
    await until('the tasks return', async () => (await producer.countQueue('q')) === 6);
    expect(await producer.getTasks('q')).toEqual(['a', 'b', 'c', 'f', 'g', 'h']);
    alive.tell('finish');
    await alive.line('tried');
    expect(alive.lines).toEqual(expect.arrayContaining(['finished d', 'finished e']));
    expect(await producer.getTasks('q')).toEqual(['a', 'b', 'c', 'f', 'g', 'h']);
    expect((await producer.getWorkers()).length).toBe(1);
  });

  it('kill -9 of the only worker of a queue: a worker of another queue returns its tasks', async () => {
    const url = await place[store]();
    const producer = make(url);
    await producer.enqueue('lonely', ['a', 'b', 'c']);
    const dead = await start({ url, queue: 'lonely', take: 2, options: SHORT });
    await until('two tasks are held', () => heldBy(dead).length === 2);
    await worker(url, 'elsewhere', LIVELY);
    await dead.end('SIGKILL');
    await until('the tasks return', async () => (await producer.countQueue('lonely')) === 3);
    expect(await producer.getTasks('lonely')).toEqual(['a', 'b', 'c']);
  });

  it('an engine worker returns the tasks of a worker that stopped as raw tasks, uncharged', async () => {
    const url = await place[store]();
    const producer = make(url);
    await producer.enqueue('q', ['a', 'b']);
    const dead = await start({ url, queue: 'q', take: 2, options: SHORT });
    await until('two tasks are held', () => heldBy(dead).length === 2);
    const crore = await open(url, { onError: () => {} });
    cleanups.push(() => crore.close());
    const queue = crore.queue<string>('q');
    const seen: unknown[] = [];
    await dead.end('SIGKILL');
    queue.work(async ({ isTask, payload, attempt, crashes }) => void seen.push([isTask, payload, attempt, crashes]), {
      tasks: 'text',
    });
    await until('both tasks run', () => seen.length === 2);
    expect(seen).toEqual([
      [true, 'a', 1, 0],
      [true, 'b', 1, 0],
    ]);
  });

  it('SIGSTOP beyond the lease: the worker notices, its processes are fenced, and it can start again', async () => {
    const url = await place[store]();
    const { worqr, heard } = await worker(url, 'q', LIVELY);
    await worqr.enqueue('q', ['a', 'b']);
    const zombie = await start({ url, queue: 'q', take: 2, options: SHORT });
    await until('two tasks are held', () => heldBy(zombie).length === 2);
    await freeze(zombie.child.pid!, url);
    await until('the tasks return', async () => (await worqr.countQueue('q')) === 2);
    await until('the work event for the returned tasks arrives', () => heard.includes('work 2'));
    const a = await worqr.dequeue('q');
    zombie.signal('SIGCONT');
    zombie.tell('finish');
    await zombie.line('tried');
    await zombie.line('lost NOT_STARTED');
    expect(zombie.lines).toEqual(expect.arrayContaining(['refused a PROCESS_GONE', 'refused b PROCESS_GONE']));
    expect(await worqr.getMatchingProcesses('a')).toEqual([a!.id]);
    expect(await worqr.getTasks('q')).toEqual(['b']);
  });

  it('several processes empty a queue, each task done once, while one of them is killed', async () => {
    const url = await place[store]();
    const producer = make(url);
    const workers = await Promise.all(
      [SHORT, LIVELY, LIVELY].map((options) => start({ url, queue: 'q', mode: 'work', options })),
    );
    const tasks = Array.from({ length: 400 }, (_x, i) => `t${i}`);
    for (let i = 0; i < tasks.length; i += 20) await producer.enqueue('q', tasks.slice(i, i + 20));
    await workers[0]!.end('SIGKILL');
    const done = () => workers.flatMap(({ lines }) => lines.filter((line) => line.startsWith('done')));
    // The killed process may have finished a task before it could print so.
    await until('the queue is empty', async () => {
      const counts = await Promise.all(tasks.slice(-1).map(() => producer.countQueue('q')));
      return counts[0] === 0 && done().length >= tasks.length - 25 && (await inProcess(url)) === 0;
    });
    const names = done();
    expect(new Set(names).size).toBe(names.length);
  });

  const inProcess = async (url: string) => {
    const crore = await open(url, { onError: () => {} });
    const { active, ready } = await crore.queue('q').count();
    await crore.close();
    return active + ready;
  };
});

describe('closing during heartbeats', () => {
  const { place, make } = workshop();

  it('stops the heartbeat thread between two calls, never during one', async () => {
    const url = await place.sqlite();
    for (let i = 0; i < 8; i++) {
      const worqr = make(url, { workerHeartbeatInterval: 2 });
      await worqr.startWorker();
      await worqr.startWork('q');
      await new Promise((resolve) => setTimeout(resolve, 20 * i)); // tries different moments
      await worqr.close();
    }
    expect(await make(url).getWorkers()).toEqual([]);
  });
});

describe('Worqr with fifty peers', () => {
  const { place, make, worker } = workshop();

  it('returns the work of a worker that stopped once, although all of them notice at the same time', async () => {
    const url = await place.redis();
    const dead = new Program('worqr', { url, queue: 'q', take: 5, options: SHORT });
    await dead.line('ready');
    const { worqr } = await worker(url, 'q', { ...LIVELY, workerCleanupInterval: 600_000 });
    await worqr.enqueue('q', [...'abcdefghij']);
    await until('five tasks are held', () => dead.lines.filter((line) => line.startsWith('held')).length === 5);
    await dead.end('SIGKILL');
    const peers = Array.from({ length: 50 }, () => make(url));
    await Promise.all(peers.map((peer) => peer.getWorkers()));
    await until('the lease expires', async () => (await worqr.getWorkers()).length === 1);
    await Promise.all(peers.map((peer) => peer.cleanupWorkers()));
    expect(await worqr.getTasks('q')).toEqual([...'abcdefghij']);
  });
});
