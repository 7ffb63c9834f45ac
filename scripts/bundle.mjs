// Builds dist/w8y.cjs and dist/crore.cjs: each command as one file, because loading many files takes longer than all
// that the commands do. The library in dist/ stays as it is; the commands find the threads, processes and scripts they
// start there.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/**
 * A start without V8's code cache writes one for the next start, with the functions that have run; `word` separates
 * starts that run different functions: by the command, and by the kind of store, which takes 3 ms off a push to Redis. A
 * cache belongs to one version of Node and, by the mark in its name, to one build: V8 itself compares only lengths, and a
 * process of the previous build may still be running. If the cache cannot be written or is not accepted, the functions
 * are compiled as usual.
 */
const loader = (words, marks, start) => `'use strict';
const { accessSync, constants: { W_OK }, mkdirSync, readFileSync, renameSync, writeFileSync } = require('fs');
const { Script } = require('vm');
${words}
const marks = ${JSON.stringify(marks)};
let url;
const dist = () => (url ??= require('url').pathToFileURL(__dirname + '/').href);
function load(name, require) {
  const filename = __dirname + '/' + name + '.bundle.js';
  const cache = __dirname + '/cache/' + [name, word, marks[name], process.version, process.arch].join('-');
  let cachedData;
  try { cachedData = readFileSync(cache); } catch {}
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData });
  if (!cachedData) process.on('exit', (code) => {
    if (code !== 0) return;
    try {
      mkdirSync(__dirname + '/cache', { recursive: true });
      accessSync(__dirname + '/cache', W_OK);
      writeFileSync(cache + '.' + process.pid, script.createCachedData());
      renameSync(cache + '.' + process.pid, cache);
    } catch {}
  });
  return script.runInThisContext()(require, dist, (url) => import(url));
}
${start}
`;

/**
 * Every module keeps its URL in dist/, where it finds the files next to it. Imports whose URL is not known at build
 * time, such as a user's module, go through the loader: a script made from a cache cannot import them.
 */
const addresses = {
  name: 'addresses',
  setup(bundler) {
    bundler.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const place = relative(dist, path);
      if (place.startsWith('..')) return undefined;
      const url = `(__dist()+${JSON.stringify(place)})`;
      const source = readFileSync(path, 'utf8').replaceAll('import.meta.url', url);
      return { contents: source.replace(/\bimport\((?!['"])/g, '__import('), loader: 'js' };
    });
  },
};

/** Leaves lazy imports, except those in `own`, to the bundle of everything, which finds them by their path in dist/. */
const leave = (own, left) => ({
  name: 'leave',
  setup(bundler) {
    bundler.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
      const place = relative(dist, join(resolveDir, path));
      if (kind !== 'dynamic-import' || own.includes(place)) return undefined;
      left.add(place);
      return { path: place, external: true };
    });
  },
});

/** Builds NAME.bundle.js from what `entry` needs, and returns its mark and its inputs. */
async function bundle(name, entry, { plugins = [], ...options }) {
  const outfile = join(dist, `${name}.bundle.js`);
  const { metafile } = await build({
    absWorkingDir: root,
    ...entry,
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    minify: true,
    // The loader reads it as latin1, one byte per character.
    charset: 'ascii',
    // import() of anything else becomes require: it is just as lazy and does not need the ES module loader.
    supported: { 'dynamic-import': false },
    banner: { js: '(function(require,__dist,__import){const module={exports:{}};' },
    footer: { js: 'return module.exports})' },
    plugins: [...plugins, addresses],
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  const mark = createHash('sha256').update(readFileSync(outfile)).digest('hex').slice(0, 12);
  return { mark, inputs: Object.keys(metafile.inputs) };
}

/** The licences of the packages whose code is in a bundle. */
function licences(inputs) {
  const packages = new Set(inputs.flatMap((path) => /^node_modules\/((@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
  const texts = [...packages].sort().map((name) => {
    const dir = join(root, 'node_modules', name);
    const file = readdirSync(dir).find((one) => /^licen[cs]e/i.test(one));
    return `${name}\n\n${readFileSync(join(dir, file), 'utf8').trim()}\n`;
  });
  return texts.join('\n----\n\n');
}

mkdirSync(join(dist, 'cache'), { recursive: true });
const w8y = await bundle('w8y', { entryPoints: ['dist/ring/w8y.js'] }, { packages: 'external' });
writeFileSync(join(dist, 'w8y.cjs'), loader("const word = 'start';", { w8y: w8y.mark }, "load('w8y', require);"));

// Large, native, or with their own files.
const external = ['pino', '@photostructure/*', '@connectrpc/*', '@bufbuild/*', 'postgres'];
// A small flow or a push should not wait for the code of everything else: each has its own bundle. For a push this takes
// 2 ms off.
const OWN = {
  run: ['cli/flow-commands/run.js', 'flow/input/yaml.js'],
  push: ['cli/job-commands/push.js', 'index.js', 'store/redis/open.js'],
};
const left = new Set();
const marks = {};
for (const [name, own] of Object.entries(OWN)) {
  const options = { external, plugins: [leave(own, left)] };
  marks[name] = (await bundle(name, { entryPoints: ['dist/cli/crore.js'] }, options)).mark;
}
const doors = ['cli/crore.js', ...left].map((place) => `${JSON.stringify(place)}:()=>require("./${place}")`);
const contents = `module.exports={${doors.join()}}`;
const all = await bundle('crore', { stdin: { contents, resolveDir: dist } }, { external });
const start = `let everything;
const find = (place) => (everything ??= load('crore', require))[place]();
const outside = (name) => (/\\.js$/.test(name) ? find(name) : require(name));
if (command !== 'crore' && Object.hasOwn(marks, command)) load(command, outside);
else find('cli/crore.js');`;
// Only these words can become the name of a cache: the arguments contain payloads.
const words = `const command = /^[a-z]+$/.test(process.argv[2]) ? process.argv[2] : 'help';
const store = /\\b(redis|valkey|postgres|grpc)\\w*:\\/\\//.exec(process.argv.join(' ') + ' ' + process.env.CRORE_STORE)?.[1];
const word = store ? command + '-' + store : command;`;
writeFileSync(join(dist, 'crore.cjs'), loader(words, { ...marks, crore: all.mark }, start));
writeFileSync(join(dist, 'crore.licences.txt'), licences(all.inputs));

// Trial runs that create the caches. Everything works without them, only slower: no reason to fail the build.
const dir = mkdtempSync(join(tmpdir(), 'crore-rehearsal-'));
writeFileSync(join(dir, 'flow.json'), '{"nodes":{"a":{"run":"true"},"b":{"run":"echo b","needs":["a"]}}}');
const store = ['--store', `sqlite:${join(dir, 'crore.db')}`];
for (const args of [['--help'], ['run', 'flow.json'], ['push', 'mails', '1', ...store], ['queue', 'ls', ...store]]) {
  spawnSync(process.execPath, [join(dist, 'crore.cjs'), ...args], { cwd: dir, stdio: 'ignore', timeout: 30_000 });
}
rmSync(dir, { recursive: true, force: true });

// A ring of one item: the functions that run a child are in the cache, too. A start that finds an item takes 1.1 ms less
// CPU time, and one that finds none 0.2 ms more.
const COMMAND = /(?<=^|\r\n)\*\d+\r\n\$\d+\r\n(EVAL\r\n\$\d+\r\n\s*local length)?/g;
const reply = (taken) => (taken ? '*3\r\n:1\r\n:1\r\n$4\r\nitem\r\n' : ':1\r\n');
const server = createServer((socket) =>
  socket
    .on('data', (data) => {
      for (const [, taken] of data.toString('latin1').matchAll(COMMAND)) socket.write(reply(taken));
    })
    .on('error', () => {}),
);
server.listen(0, '127.0.0.1', () => {
  const url = `redis://localhost:${server.address().port}`;
  const args = [join(dist, 'w8y.cjs'), '-u', url, '-k', 'ring', 'true'];
  const rehearsal = spawn(process.execPath, args, { stdio: 'ignore', timeout: 30_000 });
  rehearsal.on('exit', () => server.close());
});
