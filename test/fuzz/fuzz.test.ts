import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CroreError } from '../../dist/errors.js';
import { ServeProcess } from '../grpc/support/process.js';
import { fuzz, type Target } from './fuzzing.js';
import { portsOf } from './ports.js';
import { refusesOnly, TEXTS } from './texts.js';

/** `npm run fuzz -- --minutes N` sets the minutes for all targets together. */
const minutes = Number(process.env.CRORE_FUZZ_MINUTES ?? 0);
const TARGETS = TEXTS.length + 3;
const EACH = minutes > 0 ? (minutes * 60_000) / TARGETS : 400;

async function run(target: Target): Promise<void> {
  const tried = await fuzz(target, EACH);
  if (minutes > 0) process.stdout.write(`${target.name}: ${tried} inputs\n`);
  expect(tried).toBeGreaterThan(0);
}

describe('random input', () => {
  it.each(TEXTS.map((target) => [target.name, target] as const))(
    '%s is accepted, or refused with a clear error',
    (_name, target) => run(target),
    EACH + 120_000,
  );

  it('that breaks something would be noticed', async () => {
    const broken = { name: 'broken', input: fc.nat(50), feed: (n: number) => refusesOnly(() => parse(n)) };
    await expect(fuzz(broken, 2_000, { keep: false })).rejects.toThrow('broken: [10]');
  });
});

function parse(n: number): void {
  if (n >= 10) throw new TypeError('a parser that trips');
  throw new CroreError('BAD_OPTION', 'refused');
}

describe('random calls', () => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-fuzz-'));
  let server: ServeProcess;
  beforeAll(async () => {
    server = await ServeProcess.start(['--addr', '127.0.0.1:0', '--http', '127.0.0.1:0', '--log-level', 'error'], {
      cwd: dir,
    });
  });
  afterAll(async () => {
    await server.end();
    rmSync(dir, { recursive: true, force: true });
  });

  it.each([0, 1, 2])(
    'of kind %i are answered with a status that is not the fault of the server',
    async (i) => {
      await run(portsOf(server)[i]!);
    },
    EACH + 120_000,
  );
});
