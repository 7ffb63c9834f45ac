// Programs in Go: compiled once, in a folder that git ignores.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const cache = fileURLToPath(new URL('../test/.cache', import.meta.url));
/** One download or compilation. */
export const BOUND = 240_000;

/** Where the program of that name is when it has been compiled. */
export function programOf(name) {
  return join(cache, name, 'bench');
}

/**
 * Its path, or why there is none. `source` is its folder; `generate(place)` adds to the copy in `place` what is generated from the files `from`.
 */
export async function compiled(name, source, { from = [], generate = async () => {} } = {}) {
  const place = join(cache, name);
  const program = programOf(name);
  const sources = [...readdirSync(source).map((file) => join(source, file)), ...from];
  try {
    await run('go', ['version'], { timeout: BOUND });
    if (isNewer(program, sources)) return { program };
    mkdirSync(place, { recursive: true });
    cpSync(source, place, { recursive: true });
    await generate(place);
    await run('go', ['build', '-o', program, '.'], { cwd: place, timeout: BOUND });
    return { program };
  } catch (error) {
    return { missing: (error.stderr || error.message).trim().split('\n').at(-1) };
  }
}

function isNewer(program, sources) {
  if (!existsSync(program)) return false;
  return sources.every((file) => statSync(file).mtimeMs < statSync(program).mtimeMs);
}
