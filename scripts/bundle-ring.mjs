// Makes dist/w8y.cjs: one file for the command, and beside it V8's code cache of the functions that a start runs through.
// The cache belongs to one version of Node; with any other it is refused and the functions are compiled as usual.
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = (name) => join(root, 'dist', name);

// Runs the bundle from its cache; with W8Y_MAKE_CACHE it writes the cache at the end instead of using one.
const LOADER = `'use strict';
const { readFileSync, writeFileSync } = require('fs');
const { Script } = require('vm');
const filename = __dirname + '/w8y.bundle.js';
let cachedData;
try { if (!process.env.W8Y_MAKE_CACHE) cachedData = readFileSync(__dirname + '/w8y.cache'); } catch {}
const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData });
if (process.env.W8Y_MAKE_CACHE) process.on('exit', () => writeFileSync(__dirname + '/w8y.cache', script.createCachedData()));
script.runInThisContext()(require, __filename);
`;

rmSync(dist('w8y.cache'), { force: true });
buildSync({
  absWorkingDir: root,
  entryPoints: ['src/ring/w8y.ts'],
  outfile: dist('w8y.bundle.js'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  minify: true,
  // The loader reads it byte by byte.
  charset: 'ascii',
  packages: 'external',
  // import() of a package goes through require: it is as lazy, without the module loader.
  supported: { 'dynamic-import': false },
  define: { 'import.meta.url': '__filename' },
  banner: { js: '(function(require,__filename){const module={exports:{}};' },
  footer: { js: '})' },
  logLevel: 'warning',
});
writeFileSync(dist('w8y.cjs'), LOADER);

// The empty ring of the rehearsal: whatever is asked, there are no items.
const server = createServer((socket) =>
  socket.on('data', () => socket.write('*2\r\n:0\r\n:0\r\n')).on('error', () => {}),
);
server.listen(0, '127.0.0.1', () => {
  const url = `redis://localhost:${server.address().port}`;
  const env = { ...process.env, W8Y_MAKE_CACHE: '1' };
  const rehearsal = spawn(process.execPath, [dist('w8y.cjs'), '-u', url, '-k', 'empty', 'true'], {
    env,
    stdio: 'inherit',
  });
  rehearsal.on('exit', (code) => {
    server.close();
    process.exitCode = code ?? 1;
  });
});
