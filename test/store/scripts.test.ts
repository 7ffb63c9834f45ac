import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ScriptName, scriptOf } from '../../dist/store/redis/scripts.js';
import { RedisServer } from '../support/redis.js';

describe('Redis scripts', () => {
  const folder = new URL('../../dist/store/redis/lua/', import.meta.url);
  const files = readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.lua'));
  const nameOf = (file: string) => basename(file, '.lua') as ScriptName;
  const names = files.filter((file) => !file.startsWith('lib/')).map(nameOf);

  it('have unique names across folders', () => {
    expect(new Set(files.map(nameOf)).size).toBe(files.length);
  });

  it('include everything they use exactly once, and load on the server', async () => {
    const redis = await RedisServer.start();
    try {
      for (const name of names) {
        const { source, sha } = scriptOf(name);
        expect(await redis.client.script('LOAD', source)).toBe(sha);
        const functions = source.match(/^local function \w+/gm) ?? [];
        expect(new Set(functions).size, name).toBe(functions.length);
        // Every function called by a bare name is defined earlier or is built into Lua.
        const code = source.replace(/--.*$/gm, '').replace(/'[^'\n]*'/g, "''");
        const called = [...code.matchAll(/(?<![.\w:]|function )([a-z_]\w*)\(/g)].map(([, one]) => one!);
        const made = [/\bfunction (\w+)/g, /\bfunction[ \w]*\(([^)]*)\)/g, /\blocal ([\w, ]+)/g].flatMap((one) =>
          [...code.matchAll(one)].flatMap(([, some]) => some!.split(',').map((each) => each.trim())),
        );
        const known = new Set([...made, ...LUA]);
        const lost = called.filter((one) => !known.has(one));
        expect(lost, name).toEqual([]);
      }
    } finally {
      await redis.stop();
    }
  });

  it('are short, with one subject per file', () => {
    const lines = (file: string) => readFileSync(new URL(file, folder), 'utf8').split('\n').length;
    expect(files.filter((file) => lines(file) > 165)).toEqual([]);
  });
});

const LUA = 'function if and or not return in while until elseif ipairs pairs tonumber tostring unpack'.split(' ');
