import { describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { Worqr } from '../../dist/worqr/index.js';
import { deferred, until } from '../support/wait.js';
import { LIVELY, STORES, workshop } from './support.js';

describe.each(STORES)('Worqr on %s', (store) => {
  const { place, make, worker, cleanups } = workshop();
  const fresh = () => place[store]();

  describe('queues', () => {
    it('enqueues one task or many, and lists them in delivery order', async () => {
      const worqr = make(await fresh());
      await worqr.enqueue('q', 'a');
      await worqr.enqueue('q', ['b', 'c']);
      await worqr.enqueue('q', []);
      expect(await worqr.peekQueue('q')).toBe('a');
      expect(await worqr.countQueue('q')).toBe(3);
      expect(await worqr.getTasks('q')).toEqual(['a', 'b', 'c']);
      expect(await worqr.peekQueue('empty')).toBeNull();
      expect(await worqr.getTasks('empty')).toEqual([]);
    });

    it('lists the queues with waiting tasks', async () => {
      const { worqr } = await worker(await fresh(), 'worked');
      await worqr.enqueue('full', 'a');
      await worqr.enqueue('worked', 'a');
      expect((await worqr.getQueues()).sort()).toEqual(['full', 'worked']);
      await worqr.dequeue('worked');
      expect(await worqr.getQueues()).toEqual(['full']);
    });

    it('refuses a unique task while an equal unique one waits or is in process, and an array as a whole', async () => {
      const { worqr } = await worker(await fresh(), 'q');
      await worqr.enqueue('q', 'u', true);
      await expect(worqr.enqueue('q', 'u', true)).rejects.toMatchObject({ code: 'DUPLICATE_TASK' });
      await worqr.enqueue('q', 'u');
      await worqr.enqueue('other', 'u', true);
      await expect(worqr.enqueue('q', ['v', 'u'], true)).rejects.toMatchObject({ code: 'DUPLICATE_TASK' });
      expect(await worqr.getTasks('q')).toEqual(['u', 'u']);
      const first = await worqr.dequeue('q');
      const second = await worqr.dequeue('q');
      await worqr.finishProcess(second!.id);
      await expect(worqr.enqueue('q', 'u', true)).rejects.toThrow("queue 'q'");
      await worqr.stopProcess(first!.id);
      await expect(worqr.enqueue('q', 'u', true)).rejects.toThrow('in process');
      await worqr.finishProcess((await worqr.dequeue('q'))!.id);
      await worqr.enqueue('q', ['v', 'u'], true);
    });

    it('frees a unique task when it is cancelled or its queue is deleted', async () => {
      const worqr = make(await fresh());
      await worqr.enqueue('q', ['u', 'v'], true);
      await worqr.cancelTasks('q', 'u');
      await worqr.enqueue('q', 'u', true);
      await worqr.deleteQueue('q');
      await worqr.enqueue('q', ['u', 'v'], true);
      expect(await worqr.countQueue('q')).toBe(2);
    });

    it('answers each of a thousand concurrent unique calls', async () => {
      const url = await fresh();
      const instances = [make(url), make(url), make(url)];
      const calls = Array.from({ length: 1_000 }, (_x, i) => instances[i % 3]!.enqueue('q', `t${i % 10}`, true));
      const results = await Promise.allSettled(calls);
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
      expect((await instances[0]!.getTasks('q')).sort()).toEqual(Array.from({ length: 10 }, (_x, i) => `t${i}`));
    });

    it('keeps names distinct whatever characters they contain', async () => {
      const url = await fresh();
      const odd = ['a:b', 'a_b', '{a}', '%7Ba%7D', '*', 'a\nb', '__proto__', 'constructor', 'ü 😀', 'queues', 'error'];
      const worqr = make(url, { workerId: 'w:{}*~\n' });
      await worqr.startWorker();
      for (const name of odd) await worqr.enqueue(name, [`first of ${name}`, name]);
      expect((await worqr.getQueues()).sort()).toEqual([...odd].sort());
      for (const name of odd) await worqr.startWork(name);
      expect((await worqr.getWorkingQueues()).sort()).toEqual([...odd].sort());
      expect(await worqr.getWorkers()).toEqual(['w:{}*~\n']);
      for (const name of odd) {
        const process = await worqr.dequeue(name);
        expect(process!.task).toBe(`first of ${name}`);
        expect(await worqr.getMatchingProcesses(`first of ${name}`)).toEqual([process!.id]);
        await worqr.finishProcess(process!.id);
      }
      await worqr.failWorker();
      for (const name of odd) expect(await worqr.getTasks(name)).toEqual([name]);
    });
  });

  describe('workers', () => {
    it('may start work on many queues at once, and all are known to the others', async () => {
      const url = await fresh();
      const worqr = make(url, { workerId: 'w1' });
      await worqr.startWorker();
      const queues = Array.from({ length: 20 }, (_, i) => `q${i}`).sort();
      await Promise.all(queues.map((queue) => worqr.startWork(queue)));
      expect((await make(url).getWorkingQueues('w1')).sort()).toEqual(queues);
      await Promise.all(queues.slice(5).map((queue) => worqr.stopWork(queue)));
      expect((await make(url).getWorkingQueues('w1')).sort()).toEqual(queues.slice(0, 5));
    });

    it('must be started, and must start work on a queue', async () => {
      const url = await fresh();
      const worqr = make(url, { workerId: 'w1' });
      await worqr.enqueue('q', 'a');
      await expect(worqr.startWork('q')).rejects.toMatchObject({ code: 'NOT_STARTED' });
      await expect(worqr.dequeue('q')).rejects.toMatchObject({ code: 'NOT_STARTED' });
      await Promise.all([worqr.startWorker(), worqr.startWorker()]);
      expect(worqr.getWorkerId()).toBe('w1');
      expect(await worqr.getWorkers()).toEqual(['w1']);
      await expect(worqr.dequeue('q')).rejects.toMatchObject({ code: 'NOT_WORKING' });
      await Promise.all([worqr.startWork('q'), worqr.startWork('q'), worqr.startWork('r')]);
      expect((await worqr.getWorkingQueues()).sort()).toEqual(['q', 'r']);
      expect((await make(url).getWorkingQueues('w1')).sort()).toEqual(['q', 'r']);
      expect((await worqr.dequeue('q'))!.task).toBe('a');
      expect(await worqr.dequeue('q')).toBeNull();
      expect(await worqr.dequeue('r')).toBeNull();
    });

    it('dequeue tasks in order, each once, whichever worker asks for however many', async () => {
      const url = await fresh();
      const [one, two] = [await worker(url, 'q'), await worker(url, 'q')];
      const tasks = Array.from({ length: 500 }, (_x, i) => `t${i}`);
      await one.worqr.enqueue('q', tasks);
      const asks = Array.from({ length: 520 }, (_x, i) => (i % 2 ? one : two).worqr.dequeue('q'));
      const got = (await Promise.all(asks)).flatMap((process) => (process ? [process] : []));
      expect(got.map(({ task }) => task).sort()).toEqual([...tasks].sort());
      expect(new Set(got.map(({ id }) => id)).size).toBe(500);
      await Promise.all(got.map(({ id }) => two.worqr.finishProcess(id)));
      expect(await one.worqr.countQueue('q')).toBe(0);
    });

    it('finish a process once, from any instance, and never one that ended or never existed', async () => {
      const url = await fresh();
      const { worqr } = await worker(url, 'q');
      const other = make(url);
      await worqr.enqueue('q', ['a', 'b']);
      const [a, b] = await Promise.all([worqr.dequeue('q'), worqr.dequeue('q')]);
      await other.finishProcess(a!.id);
      await expect(worqr.finishProcess(a!.id)).rejects.toMatchObject({ code: 'PROCESS_GONE' });
      await other.stopProcess(b!.id);
      await expect(worqr.stopProcess(b!.id)).rejects.toMatchObject({ code: 'PROCESS_GONE' });
      for (const id of ['', 'nonsense', 'a:b', undefined, {}, a!.id.replace(':q', ':other')]) {
        await expect(worqr.finishProcess(id as string)).rejects.toMatchObject({ code: 'PROCESS_GONE' });
      }
      expect(await worqr.getTasks('q')).toEqual(['b']);
    });

    it('return tasks to the front, those returned together in their original order', async () => {
      const { worqr } = await worker(await fresh(), 'q');
      await worqr.enqueue('q', [...'abcde']);
      const taken = [await worqr.dequeue('q'), await worqr.dequeue('q'), await worqr.dequeue('q')];
      await Promise.all([taken[2]!, taken[0]!, taken[1]!].map(({ id }) => worqr.stopProcess(id)));
      expect(await worqr.getTasks('q')).toEqual([...'abcde']);
      await worqr.dequeue('q');
      await worqr.dequeue('q');
      await worqr.stopWork('q');
      expect(await worqr.getTasks('q')).toEqual([...'abcde']);
      expect(await worqr.getWorkingQueues()).toEqual([]);
      await expect(worqr.dequeue('q')).rejects.toMatchObject({ code: 'NOT_WORKING' });
      await worqr.stopWork('q');
      await worqr.startWork('q');
      expect((await worqr.dequeue('q'))!.task).toBe('a');
    });

    it('can be failed by themselves and by others, and only the failed ones lose their tasks', async () => {
      const url = await fresh();
      const [one, two] = [
        await worker(url, 'q', { ...LIVELY, workerId: 'one' }),
        await worker(url, 'q', { ...LIVELY, workerId: 'two' }),
      ];
      const trouble = deferred<Error & { code?: string }>();
      one.worqr.on('error', trouble.resolve);
      await one.worqr.startWork('r');
      await two.worqr.enqueue('q', ['a', 'b', 'c']);
      await two.worqr.enqueue('r', ['x', 'y']);
      const a = await one.worqr.dequeue('q');
      const b = await two.worqr.dequeue('q');
      const x = await one.worqr.dequeue('r');
      await two.worqr.failWorker('nobody');
      await two.worqr.failWorker('one');
      expect(await two.worqr.getTasks('q')).toEqual(['a', 'c']);
      expect(await two.worqr.getTasks('r')).toEqual(['x', 'y']);
      expect(await two.worqr.getWorkers()).toEqual(['two']);
      for (const { id } of [a!, x!])
        await expect(one.worqr.finishProcess(id)).rejects.toMatchObject({ code: 'PROCESS_GONE' });
      expect((await trouble.promise).code).toBe('NOT_STARTED');
      await expect(one.worqr.dequeue('q')).rejects.toMatchObject({ code: 'NOT_STARTED' });
      await two.worqr.finishProcess(b!.id);
      await one.worqr.startWorker();
      await one.worqr.startWork('q');
      expect((await one.worqr.dequeue('q'))!.task).toBe('a');
      await one.worqr.failWorker();
      expect(await two.worqr.getTasks('q')).toEqual(['a', 'c']);
      await one.worqr.failWorker();
    });

    it('are not cleaned up if they never expire, until they are failed or their name is taken over', async () => {
      const url = await fresh();
      const forever = make(url, { workerId: 'forever', workerTimeout: -1 });
      await forever.startWorker();
      await forever.startWork('q');
      const other = await worker(url, 'other', LIVELY);
      await forever.enqueue('q', ['a', 'b']);
      const a = await forever.dequeue('q');
      await other.worqr.cleanupWorkers();
      expect(await other.worqr.getTasks('q')).toEqual(['b']);
      const heir = make(url, { workerId: 'forever', workerTimeout: -1 });
      await heir.startWorker();
      expect(await other.worqr.getTasks('q')).toEqual(['a', 'b']);
      await expect(forever.finishProcess(a!.id)).rejects.toMatchObject({ code: 'PROCESS_GONE' });
      await other.worqr.failWorker('forever');
      expect(await other.worqr.getWorkers()).toEqual([other.worqr.getWorkerId()]);
    });

    it('return all their tasks when closed, and refuse every call afterwards', async () => {
      const url = await fresh();
      const { worqr } = await worker(url, 'q');
      await worqr.enqueue('q', ['a', 'b']);
      const a = await worqr.dequeue('q');
      await Promise.all([worqr.close(), worqr.close()]);
      const calls = [
        worqr.enqueue('q', 'x'),
        worqr.dequeue('q'),
        worqr.finishProcess(a!.id),
        worqr.startWorker(),
        worqr.getQueues(),
        worqr.cleanupWorkers(),
        worqr.failWorker(),
        worqr.stopWork('q'),
      ];
      for (const call of await Promise.allSettled(calls))
        expect(call).toMatchObject({ status: 'rejected', reason: { code: 'CLOSED' } });
      const other = make(url);
      expect(await other.getTasks('q')).toEqual(['a', 'b']);
      expect(await other.getWorkers()).toEqual([]);
    });
  });

  describe('events', () => {
    it('work fires on request, for new tasks and for returned tasks, only while working on the queue', async () => {
      const url = await fresh();
      const idle: string[] = [];
      const listener = make(url);
      listener.on('q', (type: string) => idle.push(type));
      await listener.enqueue('q', ['a', 'b']);
      const { worqr, heard } = await worker(url, 'q');
      expect(heard).toEqual(['work 2']);
      await worqr.requestWork('q');
      expect(heard).toEqual(['work 2', 'work 2']);
      await listener.enqueue('q', ['c', 'd', 'e']);
      await until('the work event for new tasks arrives', () => heard.includes('work 3'));
      await worqr.stopProcess((await worqr.dequeue('q'))!.id);
      await until('the work event for the returned task arrives', () => heard.includes('work 1'));
      await listener.deleteQueue('q');
      await until('the listener receives the delete event', () => idle.includes('delete'));
      expect(idle).toEqual(['delete']);
    });

    it('done, cancel and delete reach every listening instance', async () => {
      const url = await fresh();
      const { worqr, heard } = await worker(url, 'q', { workerId: 'w1' });
      const listener = make(url);
      const outside: string[] = [];
      listener.on('q', (type: string, message: string) => outside.push(`${type} ${message}`));
      await listener.enqueue('q', ['a', 'b', 'c']);
      await worqr.finishProcess((await worqr.dequeue('q'))!.id, { ok: [1] });
      await worqr.finishProcess((await worqr.dequeue('q'))!.id);
      await listener.cancelTasks('q', 'c');
      await listener.deleteQueue('q');
      const wanted = [
        'done {"workerId":"w1","task":"a","result":{"ok":[1]}}',
        'done {"workerId":"w1","task":"b"}',
        'cancel c',
        'delete ',
      ];
      for (const events of [heard, outside]) {
        await until('the last event arrives', () => events.includes('delete '));
        expect(events.filter((event) => !event.startsWith('work'))).toEqual(wanted);
      }
    });

    it('a worker that receives a cancel event can find its processes and finish them', async () => {
      const url = await fresh();
      const { worqr } = await worker(url, 'q');
      const cancelled = deferred();
      worqr.on('q', async (type: string, message: string) => {
        if (type !== 'cancel') return;
        for (const id of await worqr.getMatchingProcesses(message)) await worqr.finishProcess(id);
        cancelled.resolve();
      });
      await worqr.enqueue('q', ['keep', 'drop', 'drop', 'drop']);
      await worqr.dequeue('q');
      await worqr.dequeue('q');
      await worqr.dequeue('q');
      await make(url).cancelTasks('q', 'drop');
      await cancelled.promise;
      expect(await worqr.getMatchingProcesses('drop')).toEqual([]);
      expect(await worqr.getMatchingProcesses('keep')).toHaveLength(1);
      expect(await worqr.countQueue('q')).toBe(0);
    });

    it('stop with the last listener or the work, and a listener that throws affects nothing else', async () => {
      const url = await fresh();
      const worqr = make(url);
      const errors: string[] = [];
      worqr.on('error', (error: Error) => errors.push(error.message));
      const angry = () => {
        throw new Error('no thanks');
      };
      worqr.once('q', angry);
      await worqr.cancelTasks('q', 'a');
      await until('the listener is called', () => errors.includes('no thanks'));
      expect(worqr.listenerCount('q')).toBe(0);
      await worqr.cancelTasks('q', 'a');
      const heard: string[] = [];
      worqr.on('q', (type: string) => heard.push(type));
      await worqr.deleteQueue('q');
      await until('an event arrives after listening again', () => heard.includes('delete'));
      expect(errors).toEqual(['no thanks']);
    });

    it('debug shows what an instance holds', async () => {
      const url = await fresh();
      const worqr = make(url, { debugMode: true, debugInterval: 20, workerId: 'w1' });
      await worqr.startWorker();
      await worqr.startWork('q');
      await worqr.enqueue('q', ['a', 'b', 'c']);
      await worqr.dequeue('q');
      const shown = deferred<unknown>();
      worqr.on('debug', shown.resolve);
      expect(await shown.promise).toEqual({
        workerId: 'w1',
        started: true,
        queues: [{ queue: 'q', waiting: 2, processes: 1 }],
      });
    });
  });

  it('binary: tasks and events preserve every byte, as Buffers', async () => {
    const url = await fresh();
    const worqr = new Worqr<Buffer>(url, { binary: true });
    cleanups.push(() => worqr.close());
    const heard: [string, Buffer | string][] = [];
    worqr.on('q', (type: string, message: Buffer | string) => heard.push([type, message]));
    await worqr.startWorker();
    await worqr.startWork('q');
    const all = Buffer.from(Array.from({ length: 256 }, (_x, i) => i));
    await worqr.enqueue('q', [all, all, Buffer.alloc(0), new Uint8Array([255])]);
    expect(await worqr.peekQueue('q')).toEqual(all);
    expect(await worqr.getTasks('q')).toEqual([all, all, Buffer.alloc(0), Buffer.from([255])]);
    const process = await worqr.dequeue('q');
    expect(process!.task).toEqual(all);
    expect(await worqr.getMatchingProcesses(all)).toEqual([process!.id]);
    await worqr.finishProcess(process!.id);
    await worqr.cancelTasks('q', all);
    await until('both events arrive', () => heard.some(([type]) => type === 'cancel'));
    expect(heard.find(([type]) => type === 'cancel')![1]).toEqual(all);
    const done = JSON.parse(heard.find(([type]) => type === 'done')![1] as string) as { task: string };
    expect(Buffer.from(done.task, 'base64')).toEqual(all);
    expect(await worqr.countQueue('q')).toBe(2);
  });

  it('shares a queue with engine workers, each task done once', async () => {
    const url = await fresh();
    const { worqr } = await worker(url, 'q');
    const engineUrl = url;
    const crore = await open(engineUrl, { onError: () => {} });
    cleanups.push(() => crore.close());
    const queue = crore.queue<string>('q');
    const done: string[] = [];
    const jobs: string[] = [];
    queue.work(
      async (job) => {
        if (!job.isTask) jobs.push(job.payload);
        else done.push(job.payload);
      },
      { tasks: 'text', concurrency: 5 },
    );
    const loop = async () => {
      const process = await worqr.dequeue('q');
      if (!process) return;
      done.push(process.task);
      await worqr.finishProcess(process.id);
      await loop();
    };
    worqr.on('q', (type: string) => {
      if (type === 'work') loop().catch(() => {});
    });
    const tasks = Array.from({ length: 300 }, (_x, i) => `t${i}`);
    for (const task of tasks) await (done.length % 2 ? queue.push(task) : worqr.enqueue('q', task));
    await queue.add('job');
    await until('everything is done', () => done.length >= 300 && jobs.length === 1);
    expect([...done].sort()).toEqual([...tasks].sort());
    expect(jobs).toEqual(['job']);
  });
});
