import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * What generates code for other languages, fetched once by their own package managers into a folder that git ignores. A
 * machine without the language, or from which its registry cannot be reached, gets the reason instead.
 */

const root = fileURLToPath(new URL('../../..', import.meta.url));
const cache = join(root, 'test/.cache');
/** One download; all of them stay within the timeout that the tests have for the first run. */
const BOUND = 120_000;
const GO_TOOLS = [
  'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12',
  'google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2',
];

export type Tools = { env: NodeJS.ProcessEnv } | { missing: string };

function run(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; timeout?: number } = {},
): Promise<{ ok: boolean; said: string; why: string }> {
  const { cwd = root, env = {}, timeout = 20_000 } = options;
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env: { ...process.env, ...env }, timeout }, (error, stdout, stderr) => {
      const said = `${stdout}${stderr}`.trim();
      const why = error?.killed ? `not done within ${timeout} ms` : said.split('\n').at(-1) || error?.message || '';
      resolve({ ok: error === null, said, why });
    });
  });
}

/** Environment variables with which `python` finds grpc and its generator. */
export async function pythonTools(python: string): Promise<Tools> {
  const version = await run(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])']);
  if (!version.ok) return { missing: `there is no Python: ${version.why}` };
  const place = join(cache, `python-${version.said}`);
  const works = async (env: NodeJS.ProcessEnv) =>
    (await run(python, ['-c', 'import grpc, grpc_tools.protoc'], { env })).ok;
  const env = { PYTHONPATH: place };
  if (await works({})) return { env: {} };
  if (existsSync(place) && (await works(env))) return { env };
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, 'fetching-'));
  const packages = ['grpcio', 'grpcio-tools'];
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', fresh, ...packages];
  const fetched = await run(python, pip, { timeout: BOUND });
  // It is moved into place when it is complete.
  if (fetched.ok) {
    rmSync(place, { recursive: true, force: true });
    renameSync(fresh, place);
  } else rmSync(fresh, { recursive: true, force: true });
  return fetched.ok ? { env } : { missing: `pip cannot install ${packages.join(' and ')}: ${fetched.why}` };
}

/** Environment variables with which buf finds the generators for Go; the modules of the example are there, too. */
export async function goTools(example: string): Promise<Tools> {
  const version = await run('go', ['version']);
  if (!version.ok) return { missing: `there is no Go: ${version.why}` };
  const GOBIN = join(cache, 'go');
  for (const tool of GO_TOOLS) {
    const [name] = tool.split('/').at(-1)!.split('@');
    if (existsSync(join(GOBIN, name!))) continue;
    const installed = await run('go', ['install', tool], { env: { GOBIN }, timeout: BOUND });
    if (!installed.ok) return { missing: `go cannot install ${name}: ${installed.why}` };
  }
  const modules = await run('go', ['mod', 'download'], { cwd: example, timeout: BOUND });
  if (!modules.ok) return { missing: `go cannot download the modules of the example: ${modules.why}` };
  return { env: { PATH: `${GOBIN}:${process.env.PATH}` } };
}
