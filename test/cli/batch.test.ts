import { describe, expect, it } from 'vitest';
import { STORES } from '../support/stores.js';
import { type Desk, setUpDesk } from './support/setup.js';

describe.each(STORES)('batches and trees from the command line on %s', (_storeName, fresh) => {
  let { line, crore, name, queue } = {} as Desk;
  setUpDesk('batch', fresh, (desk) => {
    ({ line, crore, name, queue } = desk);
  });

  it('a batch is opened, filled from another queue, closed, shown and run', async () => {
    expect((await line.run(['batch', 'open', name, '{"month":5}', '--id', 'may'])).out).toBe('may\n');
    const parts = `${name}-parts`;
    const [first] = await line.json('push', parts, 'ada', 'bob', '--batch', 'may', '--batch-queue', name);
    expect(first).toMatchObject({ queue: parts, outcome: 'created' });
    expect((await line.run(['batch', 'close', name, 'may'])).out).toBe('closed, 2 to go\n');
    expect(await line.json('batch', 'show', name, 'may')).toMatchObject([
      { state: 'blocked', open: false, total: 2, pending: 2, done: 0 },
    ]);
    const worker = crore.queue(parts).work(async () => {});
    const owner = queue.work(async ({ payload }) => payload);
    expect(await queue.batch('may').finished()).toEqual({ month: 5 });
    await Promise.all([worker.close(), owner.close()]);
    const { out } = await line.run(['batch', 'show', name, 'may']);
    expect(out).toMatch(/\nstate +done\nmembers +2: 2 done\nopen +no\n/);
    expect((await line.run(['job', 'show', parts, String(first!.id)])).out).toMatch(
      new RegExp(`\\nmember of +may of ${name}\\n`),
    );
    expect((await line.run(['job', 'show', name, 'may'])).out).toMatch(/\nmembers +2: 2 done\n/);
  });

  it('a closed batch takes no more members, and an unknown one is named', async () => {
    await line.run(['batch', 'open', name, '--id', 'b']);
    await line.run(['batch', 'close', name, 'b']);
    const late = await line.run(['push', name, 'x', '--batch', 'b']);
    expect(late).toMatchObject({ code: 1, err: expect.stringContaining(`batch 'b' of queue '${name}' is closed`) });
    const none = await line.run(['batch', 'show', name, 'none']);
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining("no batch 'none'") });
    const alone = await line.run(['push', name, 'x', '--batch-queue', name]);
    expect(alone).toMatchObject({ code: 2, err: expect.stringContaining('--batch-queue needs --batch') });
    const when = await line.run(['batch', 'open', name, '--when', 'never']);
    expect(when).toMatchObject({ code: 2, err: expect.stringContaining('--when') });
  });

  it('a batch is cancelled with its members, or only the members', async () => {
    await line.run(['batch', 'open', name, '--id', 'c']);
    await line.run(['push', name, 'x', 'y', '--batch', 'c']);
    expect((await line.run(['batch', 'cancel', name, 'c', '--members'])).out).toBe('2 cancelled\n');
    expect((await queue.get('c'))!.state).toBe('blocked');
    await line.run(['push', name, 'z', '--batch', 'c']);
    expect((await line.run(['batch', 'cancel', name, 'c'])).out).toBe('2 cancelled\n');
    expect((await queue.get('c'))!.state).toBe('cancelled');
  });

  it('a tree is shown with a line for each job, and cancelled or removed as a whole', async () => {
    const leaf = (id: string) => ({ queue: name, payload: id, id });
    await crore.addTree({ ...leaf('root'), children: [{ ...leaf('left'), children: [leaf('low')] }, leaf('right')] });
    expect((await line.run(['job', 'tree', name, 'root'])).out).toBe(
      [
        `${name}  root  blocked`,
        `├─ ${name}  left  blocked`,
        `│  └─ ${name}  low  ready`,
        `└─ ${name}  right  ready`,
        '',
      ].join('\n'),
    );
    expect(await line.json('job', 'tree', name, 'root')).toMatchObject([
      { id: 'root', tree: [{ id: 'left', tree: [{ id: 'low', tree: [] }] }, { id: 'right' }] },
    ]);
    expect((await line.run(['job', 'tree', name, 'root', '--cancel'])).out).toBe('4 cancelled\n');
    expect((await line.run(['job', 'tree', name, 'root', '--rm'])).out).toBe('4 removed\n');
    expect(await line.run(['job', 'tree', name, 'root'])).toMatchObject({
      code: 1,
      err: expect.stringContaining("'root'"),
    });
  });
});
