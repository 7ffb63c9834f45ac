// Builds dist/dashboard/page/: the dashboard's page as a few files that a browser loads. What only some pages need is a file of its
// own, loaded when such a page is opened.
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const from = join(root, 'src', 'dashboard', 'page');
const to = join(root, 'dist', 'dashboard', 'page');

rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: { app: join(from, 'main.tsx') },
  outdir: to,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'browser',
  target: ['chrome109', 'firefox115', 'safari16'],
  minify: true,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  // Names change with the content, so that browsers may keep the files for ever; the entry is asked for anew each time.
  chunkNames: 'part-[hash]',
  loader: { '.svg': 'dataurl' },
  legalComments: 'linked',
  logLevel: 'warning',
});
cpSync(join(from, 'index.html'), join(to, 'index.html'));
