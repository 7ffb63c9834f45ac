// The clients in Go: generated and compiled once, into a folder that git ignores.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const source = join(root, 'bench/grpc/go');
const place = join(root, 'test/.cache/go-bench');
const GOBIN = join(root, 'test/.cache/go');
const GENERATORS = [
  'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12',
  'google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2',
];
/** One download or compilation. */
const BOUND = 240_000;

/** Its path, or why there is none. */
export async function goProgram() {
  const program = join(place, 'bench');
  try {
    await run('go', ['version'], { timeout: BOUND });
    if (!isNewer(program)) await build(program);
    return { program };
  } catch (error) {
    return { missing: (error.stderr || error.message).trim().split('\n').at(-1) };
  }
}

function isNewer(program) {
  if (!existsSync(program)) return false;
  const sources = [...readdirSync(source).map((name) => join(source, name)), join(root, 'proto/lakh/lakh.proto')];
  return sources.every((file) => statSync(file).mtimeMs < statSync(program).mtimeMs);
}

async function build(program) {
  for (const generator of GENERATORS) {
    const [name] = generator.split('/').at(-1).split('@');
    if (existsSync(join(GOBIN, name))) continue;
    await run('go', ['install', generator], { env: { ...process.env, GOBIN }, timeout: BOUND });
  }
  mkdirSync(place, { recursive: true });
  cpSync(source, place, { recursive: true });
  const env = { ...process.env, PATH: `${GOBIN}:${process.env.PATH}` };
  const proto = join(root, 'proto');
  const generate = ['generate', proto, '--template', 'buf.gen.yaml', '--path', join(proto, 'lakh')];
  await run(join(root, 'node_modules/.bin/buf'), generate, { cwd: place, env, timeout: BOUND });
  await run('go', ['build', '-o', program, '.'], { cwd: place, timeout: BOUND });
}
