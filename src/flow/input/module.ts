import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CroreError, isCroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { Flow } from './define.js';
import { nameOf } from './document.js';

/** Loads the flow that a module exports as its default. */
export async function loadModule(file: string): Promise<Graph> {
  const path = resolve(file);
  if (!existsSync(path)) throw new CroreError('BAD_FLOW', `cannot read ${file}: no such file`);
  const found = await importFile(path, file);
  const flow = found.default;
  if (!(flow instanceof Flow) && !isFlow(flow)) {
    throw new CroreError('BAD_FLOW', `${file}: the default export must be created with flow({ … }) from 'crore/flow'`);
  }
  return (flow as Flow).graph(file, nameOf(file));
}

/** Another copy of this package may have created the flow, so flows are recognized by their methods. */
function isFlow(value: unknown): boolean {
  return typeof (value as Flow | undefined)?.graph === 'function' && (value as Flow).isFlow === true;
}

async function importFile(path: string, file: string): Promise<{ default?: unknown }> {
  try {
    if (!/\.[cm]?ts$/.test(path) || (process.features as { typescript?: unknown }).typescript)
      return await import(pathToFileURL(path).href);
    return await importTypeScript(path);
  } catch (error) {
    if (isCroreError(error)) throw error;
    throw new CroreError('BAD_FLOW', `${file}: cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
}

/** Older Node versions cannot load TypeScript: esbuild strips the types, if the user's project has it. */
async function importTypeScript(path: string): Promise<{ default?: unknown }> {
  const built = await build(path);
  // Next to the source, because its imports are resolved from there.
  const dir = join(dirname(path), '.crore');
  const target = join(dir, `${nameOf(path)}-${process.pid}.mjs`);
  const existed = existsSync(dir);
  mkdirSync(dir, { recursive: true });
  writeFileSync(target, built);
  try {
    return await import(pathToFileURL(target).href);
  } catch (error) {
    // Users do not know the generated file, so the message names the source.
    if (error instanceof Error) error.message = error.message.replaceAll(target, path);
    throw error;
  } finally {
    rmSync(target, { force: true });
    if (!existed) removeIfEmpty(dir);
  }
}

interface Esbuild {
  buildSync(options: object): { outputFiles: { text: string }[] };
}

async function build(path: string): Promise<string> {
  // Loaded here, because it loads the ES module loader.
  const { createRequire } = await import('node:module');
  let esbuild: Esbuild | undefined;
  for (const from of [path, import.meta.url]) {
    try {
      esbuild ??= createRequire(from)('esbuild') as Esbuild;
    } catch {
      // not installed there: try next to this package
    }
  }
  if (!esbuild) {
    throw new CroreError(
      'BAD_FLOW',
      `${path}: Node ${process.versions.node} cannot read TypeScript: use Node 22.18 or newer, install esbuild, or compile it first`,
    );
  }
  const options = {
    entryPoints: [path],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'silent',
  };
  return esbuild.buildSync(options).outputFiles[0]!.text;
}

export function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // not empty, or already removed
  }
}
