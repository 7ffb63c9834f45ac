// What a run was measured on: without it, figures say nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { riverProgram } from './subjects/river.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The machine, the versions of everything measured, and how busy the machine was before the first measurement. */
export function describeMachine() {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(`${here}package.json`, 'utf8'));
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model ?? 'unknown',
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    load: Number(loadavg()[0].toFixed(1)),
    versions: {
      node: process.versions.node,
      crore: versionIn(`${here}../package.json`),
      ...serverVersions(),
      ...Object.fromEntries(Object.keys({ ...dependencies, ...optionalDependencies }).flatMap(peerVersion)),
      ...riverVersion(),
    },
  };
}

function peerVersion(name) {
  const file = `${here}node_modules/${name}/package.json`;
  return existsSync(file) ? [[name, versionIn(file)]] : [];
}

function riverVersion() {
  if (!existsSync(riverProgram)) return {};
  const [, version] = /river v(\S+)/.exec(readFileSync(`${here}postgres/river/go.mod`, 'utf8'));
  return { river: version };
}

function versionIn(file) {
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

function serverVersions() {
  const programs = { redis: ['redis-server', '--version'], postgres: ['psql', '--version'] };
  const found = Object.entries(programs).flatMap(([name, [program, ...args]]) => {
    const match = /\d+\.\d+(\.\d+)?/.exec(spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '');
    return match ? [[name, match[0]]] : [];
  });
  return Object.fromEntries(found);
}
