// The clients in Go, with the code that is generated from the protocol.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BOUND, compiled } from '../go.mjs';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const proto = join(root, 'proto');
const GOBIN = join(root, 'test/.cache/go');
const GENERATORS = [
  'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12',
  'google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2',
];

/** Its path, or why there is none. */
export function goProgram() {
  return compiled('go-bench', join(root, 'bench/grpc/go'), { from: [join(proto, 'lakh/lakh.proto')], generate });
}

async function generate(place) {
  for (const generator of GENERATORS) {
    const [name] = generator.split('/').at(-1).split('@');
    if (existsSync(join(GOBIN, name))) continue;
    await run('go', ['install', generator], { env: { ...process.env, GOBIN }, timeout: BOUND });
  }
  const env = { ...process.env, PATH: `${GOBIN}:${process.env.PATH}` };
  const args = ['generate', proto, '--template', 'buf.gen.yaml', '--path', join(proto, 'lakh')];
  await run(join(root, 'node_modules/.bin/buf'), args, { cwd: place, env, timeout: BOUND });
}
