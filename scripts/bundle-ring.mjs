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

const LOADER = `'use strict';
const { readFileSync } = require('fs');
const { Script } = require('vm');
const filename = __dirname + '/w8y.bundle.js';
let cachedData;
try { cachedData = readFileSync(__dirname + '/w8y.cache'); } catch {}
new Script(readFileSync(filename, 'latin1'), { filename, cachedData }).runInThisContext()(require, __filename);
`;

// The same without a cache, which it writes at the end: with the functions that have run by then.
const REHEARSAL = `
const { readFileSync, writeFileSync } = require('fs');
const { Script } = require('vm');
const dist = process.argv[1];
const filename = dist + '/w8y.bundle.js';
const script = new Script(readFileSync(filename, 'latin1'), { filename });
process.on('exit', () => writeFileSync(dist + '/w8y.cache', script.createCachedData()));
script.runInThisContext()(require, dist + '/w8y.cjs');
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
  const args = ['-e', REHEARSAL, '--', dist(''), '-u', url, '-k', 'empty', 'true'];
  const rehearsal = spawn(process.execPath, args, { stdio: 'inherit' });
  // Without a cache everything works, only slower: no reason to fail the build.
  rehearsal.on('exit', () => server.close());
});
