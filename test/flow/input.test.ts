import { describe, expect, it } from 'vitest';
import { GraphBuilder } from '../../dist/flow/graph/graph-builder.js';
import { graphText } from '../../dist/flow/graph/graph-text.js';
import { DEFAULT_OPTIONS } from '../../dist/flow/graph/node-spec.js';
import { readSource } from '../../dist/flow/input/source.js';
import { place } from './support.js';

const SPEC = { work: { kind: 'shell', run: 'true' }, options: DEFAULT_OPTIONS } as const;

describe('an invalid flow is refused with the location of the error', () => {
  it.each([
    ['empty', 'f.yaml', '', /f\.yaml: the file is empty/],
    ['only spaces', 'f.json', ' \n', /f\.json: the file is empty/],
    ['a list', 'f.yaml', '- a\n', /a flow must be a map/],
    ['no nodes', 'f.yaml', 'name: x\n', /'nodes' is missing/],
    ['an unknown key', 'f.yaml', 'nodes: {}\nnoodles: {}\n', /unknown key 'noodles'/],
    [
      'an unknown key of a node',
      'f.yaml',
      'nodes:\n  a: { run: x }\n  b: { rum: x }\n',
      /f\.yaml:3: node 'b': unknown key 'rum'/,
    ],
    ['bad YAML', 'f.yaml', 'nodes:\n  a: { run: "x }\n', /f\.yaml:\d: /],
    ['bad JSON', 'f.json', '{"nodes":\n{"a": {run: 1}}}', /f\.json:2: /],
    ['a missing command', 'f.yaml', 'nodes:\n  a: { needs: [] }\n', /f\.yaml:2: node 'a' has no command/],
    ['an empty command', 'f.yaml', 'nodes:\n\n  a: { run: "  " }\n', /f\.yaml:3: node 'a' has no command/],
    ['an empty list', 'f.yaml', 'nodes:\n  a: { run: [] }\n', /f\.yaml:2: node 'a' has no command/],
    ['a number for a command', 'f.yaml', 'nodes:\n  a: { run: 5 }\n', /f\.yaml:2: node 'a' has no command/],
    ['run and queue', 'f.yaml', 'nodes:\n  a: { run: x, queue: y }\n', /f\.yaml:2: node 'a' has both/],
    [
      'a doubled id',
      'f.yaml',
      'nodes:\n  a: { run: x }\n  b: { run: x }\n  a: { run: y }\n',
      /f\.yaml:4: duplicate key 'a'/,
    ],
    [
      'a doubled id in JSON',
      'f.json',
      '{"nodes": {\n"a": {"run": "x"},\n"a": {"run": "y"}}}',
      /f\.json:3: duplicate node 'a'/,
    ],
    [
      'an unknown need',
      'f.yaml',
      'nodes:\n  a: { run: x }\n  b: { run: x, needs: [a, c] }\n',
      /f\.yaml:3: unknown node 'c' in the edge with 'b'/,
    ],
    ['a self edge', 'f.yaml', 'nodes:\n  a: { run: x, needs: [a] }\n', /f\.yaml:2: node 'a' needs itself: a -> a/],
    [
      'a cycle',
      'f.yaml',
      'nodes:\n  x: { run: x }\n  a: { run: x, needs: [b, x] }\n  b:\n    run: x\n    needs: [a]\n',
      /f\.yaml:3: dependency cycle: a -> b -> a$/,
    ],
    [
      'a cycle in JSON',
      'f.json',
      '{"nodes":{\n"a":{"run":"x","needs":["c"]},\n"b":{"run":"x","needs":["a"]},\n"c":{"run":"x","needs":["b"]}}}',
      /f\.json:2: dependency cycle: a -> b -> c -> a$/,
    ],
    [
      'a bad policy',
      'f.yaml',
      'nodes:\n  a: { run: x }\n  b: { run: x, needs: { a: maybe } }\n',
      /f\.yaml:3: node 'b': needs must be/,
    ],
    ['a bad timeout', 'f.yaml', 'nodes:\n  a: { run: x, timeout: soon }\n', /f\.yaml:2: .*'soon'/],
    ['bad retries', 'f.yaml', 'nodes:\n  a: { run: x, retries: -1 }\n', /f\.yaml:2: node 'a': retries/],
    ['a bad variable', 'f.yaml', 'nodes:\n  a: { run: x, env: { "A-B": x } }\n', /f\.yaml:2: .*'A-B'/],
    ['a map over nothing', 'f.yaml', 'nodes:\n  a: { run: x, map: b }\n', /unknown node 'b'/],
    ['an unknown kind of file', 'f.txt', 'x', /f\.txt: a flow must be a/],
  ])('%s', async (_what, name, text, message) => {
    const file = place().write(name, text);
    await expect(readSource({ file })).rejects.toThrow(message);
    await expect(readSource({ file })).rejects.toMatchObject({ code: 'BAD_FLOW' });
  });

  it.each([
    ['an empty table', '', undefined, /w\.csv: the file is empty/],
    ['a wrong header', 'name,command\na,b\n', undefined, /w\.csv:1: the header must contain id,command/],
    ['too few fields', 'id,command\na\n', undefined, /w\.csv:2: expected the fields id,command, found 1/],
    ['no command', 'id,command\na,\n', undefined, /w\.csv:2: node 'a' has no command/],
    ['a doubled id', 'id,command\na,x\nb,x\na,x\n', undefined, /w\.csv:4: duplicate node 'a'/],
    ['an open quote', 'id,command\na,"echo\nb,x\n', undefined, /w\.csv:2: unclosed quote/],
    ['text behind a quote', 'id,command\na,"x"y\n', undefined, /w\.csv:2: text after the closing quote/],
    ['a quote in a plain field', 'id,command\na,ec"ho\n', undefined, /w\.csv:2: a quote inside/],
    ['an unknown node', 'id,command\na,x\n', 'from,to\na,a2\n', /s\.csv:2: unknown node 'a2'/],
    ['a self edge', 'id,command\na,x\n', 'from,to\na,a\n', /s\.csv:2: node 'a' needs itself/],
    ['a cycle', 'id,command\na,x\nb,x\n', 'from,to\na,b\nb,a\n', /s\.csv:3: dependency cycle: a -> b -> a/],
  ])('in tables: %s', async (_what, workload, schedule, message) => {
    const here = place();
    const source = {
      workload: here.write('w.csv', workload),
      schedule: schedule === undefined ? undefined : here.write('s.csv', schedule),
    };
    await expect(readSource(source)).rejects.toThrow(message);
  });

  it('a missing file, and no file argument at all', async () => {
    await expect(readSource({ file: '/nowhere/f.yaml' })).rejects.toThrow('no such file');
    await expect(readSource({ file: '/nowhere/f.mjs' })).rejects.toThrow('no such file');
    await expect(readSource({})).rejects.toThrow('no flow given');
  });
});

describe('reading a flow', () => {
  it('accepts tables in any order, with quotes, line breaks and a byte order mark', async () => {
    const here = place();
    const workload = here.write('w.csv', '\uFEFFcommand,id\r\n"echo ""hi"",\nthere",a\r\n\r\ntrue,b\r\n');
    const schedule = here.write('s.csv', 'to,from\nb,a\n');
    const graph = await readSource({ workload, schedule });
    expect(graph.ids).toEqual(['a', 'b']);
    expect(graph.specs[0]!.work).toEqual({ kind: 'shell', run: 'echo "hi",\nthere' });
    expect([...graph.order]).toEqual([0, 1]);
  });

  it('supports every option, and round-trips through its written form', async () => {
    const here = place();
    const text = `name: all
env: { LANG: C }
tokens: { gpu: 2 }
nodes:
  list: { run: "echo '[1]'" }
  a: { run: [prog, "an arg"], needs: { list: finished }, retries: 2, backoff: 5s, timeout: 30s, priority: 3, cpu: 2, tokens: { gpu: 1 },
       env: { A: 1 }, cwd: sub, inputs: [x], outputs: y }
  m: { run: "echo", map: list }
  q: { queue: mails, payload: { to: ops }, needs: [a, m] }
`;
    const graph = await readSource({ file: here.write('f.yaml', text) });
    const a = graph.specs[graph.index.get('a')!]!;
    expect(a.options).toMatchObject({
      retries: 2,
      timeout: 30_000,
      priority: 3,
      cpu: 2,
      cache: true,
      outputs: ['y'],
      env: { A: '1' },
    });
    expect(a.options.backoff).toEqual({ kind: 'fixed', delay: 5_000 });
    const again = await readSource({ file: here.write('f.json', graphText(graph)) });
    expect(again.ids).toEqual(graph.ids);
    expect(again.specs).toEqual(graph.specs);
    expect(again.downs).toEqual(graph.downs);
    expect(again.upPolicies).toEqual(graph.upPolicies);
  });

  it('handles a chain, a fan and a lattice of a hundred thousand nodes', () => {
    const size = 100_000;
    for (const shape of ['chain', 'fan-in', 'circle']) {
      const draft = new GraphBuilder((id) => id);
      for (let i = 0; i < size; i++) draft.node(`n${i}`, SPEC);
      for (let i = 1; i < size; i++)
        draft.edge(shape === 'fan-in' ? `n${i}` : `n${i - 1}`, shape === 'fan-in' ? 'n0' : `n${i}`);
      if (shape === 'circle') draft.edge(`n${size - 1}`, 'n0');
      if (shape === 'circle') expect(() => draft.finish({ name: 'x' })).toThrow('dependency cycle: n0 -> n1 -> n2');
      else expect(draft.finish({ name: 'x' }).order).toHaveLength(size);
    }
  });
});
