// Makes dist/w8y.cjs and dist/crore.cjs: each command as one file, because loading many costs more than all they do. The
// library in dist/ stays as it is; what the commands start of it (threads, processes, scripts) is found there.
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
 * A start without V8's code cache leaves one for the next start, with the functions that have run; `word` tells starts
 * apart that run through different ones. A cache belongs to one version of Node and, by the mark in its name, to one build: V8
 * itself compares no more than lengths, and a process of the last build may still be about. Where it cannot be written, or
 * is not accepted, the functions are compiled as usual.
 */
const loader = (name, word, mark) => `'use strict';
const { accessSync, constants: { W_OK }, readFileSync, renameSync, writeFileSync } = require('fs');
const { Script } = require('vm');
const filename = __dirname + '/${name}.bundle.js';
const cache = __dirname + '/cache/' + ['${name}', ${word}, '${mark}', process.version, process.arch].join('-');
let cachedData;
try { cachedData = readFileSync(cache); } catch {}
const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData });
if (!cachedData) process.on('exit', (code) => {
  if (code !== 0) return;
  try {
    accessSync(__dirname + '/cache', W_OK);
    writeFileSync(cache + '.' + process.pid, script.createCachedData());
    renameSync(cache + '.' + process.pid, cache);
  } catch {}
});
const dist = require('url').pathToFileURL(__dirname + '/').href;
script.runInThisContext()(require, dist, (url) => import(url));
`;

/**
 * Every module keeps the address it has in dist/, where it finds what stands beside it. What it imports by an address that is
 * not known now, a user's module, is imported by the loader: a script made from a cache cannot.
 */
const addresses = {
  name: 'addresses',
  setup(bundler) {
    bundler.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const place = relative(dist, path);
      if (place.startsWith('..')) return undefined;
      const url = `(__dist+${JSON.stringify(place)})`;
      const source = readFileSync(path, 'utf8').replaceAll('import.meta.url', url);
      return { contents: source.replace(/\bimport\((?!['"])/g, '__import('), loader: 'js' };
    });
  },
};

async function bundle(name, entry, word, options) {
  const outfile = join(dist, `${name}.bundle.js`);
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    minify: true,
    // The loader reads it byte by byte.
    charset: 'ascii',
    // import() of anything else goes through require: it is as lazy, without the loader of ES modules.
    supported: { 'dynamic-import': false },
    banner: { js: '(function(require,__dist,__import){const module={exports:{}};' },
    footer: { js: '})' },
    plugins: [addresses],
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  const mark = createHash('sha256').update(readFileSync(outfile)).digest('hex').slice(0, 12);
  writeFileSync(join(dist, `${name}.cjs`), loader(name, word, mark));
  return Object.keys(metafile.inputs);
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
await bundle('w8y', 'dist/ring/w8y.js', "'start'", { packages: 'external' });
const inputs = await bundle(
  'crore',
  'dist/cli/crore.js',
  "/^[a-z]+$/.test(process.argv[2]) ? process.argv[2] : 'help'",
  {
    // Large, native, or with files of their own.
    external: ['pino', '@photostructure/*', '@connectrpc/*', '@bufbuild/*'],
  },
);
writeFileSync(join(dist, 'crore.licences.txt'), licences(inputs));

// Rehearsals, for the caches. Without them everything works, only slower: no reason to fail the build.
const dir = mkdtempSync(join(tmpdir(), 'crore-rehearsal-'));
writeFileSync(join(dir, 'flow.json'), '{"nodes":{"a":{"run":"true"},"b":{"run":"echo b","needs":["a"]}}}');
const store = ['--store', `sqlite:${join(dir, 'crore.db')}`];
for (const args of [['--help'], ['run', 'flow.json'], ['push', 'mails', '1', ...store], ['queue', 'ls', ...store]]) {
  spawnSync(process.execPath, [join(dist, 'crore.cjs'), ...args], { cwd: dir, stdio: 'ignore', timeout: 30_000 });
}
rmSync(dir, { recursive: true, force: true });

// The empty ring: whatever is asked, there are no items.
const server = createServer((socket) =>
  socket.on('data', () => socket.write('*2\r\n:0\r\n:0\r\n')).on('error', () => {}),
);
server.listen(0, '127.0.0.1', () => {
  const url = `redis://localhost:${server.address().port}`;
  const args = [join(dist, 'w8y.cjs'), '-u', url, '-k', 'empty', 'true'];
  const rehearsal = spawn(process.execPath, args, { stdio: 'ignore', timeout: 30_000 });
  rehearsal.on('exit', () => server.close());
});
