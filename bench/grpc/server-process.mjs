// A server in its own process, and what it says about itself.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('./subject.mjs', import.meta.url));

/** `ask` returns its CPU time in microseconds and its memory in bytes. */
export async function startServer(...args) {
  const child = fork(FILE, args.map(String));
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`${args[0]} ended before it listened`)));
  failed.catch(() => {});
  const [{ port }] = await Promise.race([once(child, 'message'), failed]);
  return {
    port,
    ask: async () => {
      child.send({});
      return (await once(child, 'message'))[0];
    },
    stop: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

export async function until(probe) {
  const end = performance.now() + 120_000;
  while (!probe()) {
    if (performance.now() > end) throw new Error('nothing came any more');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
