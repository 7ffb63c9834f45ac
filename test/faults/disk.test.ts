import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Program } from '../support/processes.js';
import { ROUNDS } from '../support/rounds.js';

/** Runs a command with a private disk of sixteen megabytes mounted here, which disappears with the command. */
const onSmallDisk = (dir: string) => [
  'unshare',
  ...['--map-root-user', '--mount', 'sh', '-c', `mount -t tmpfs -o size=16m none "$0" && exec "$@"`, dir],
];

interface Story {
  accepted: string[];
  refused: { id: string; code: string; message: string }[];
  /** While the disk was full. */
  seen: { counts: Record<string, number>; jobs: string[]; complaints: string[] };
  runs: Record<string, number>;
}

describe('a SQLite file on a full disk', ROUNDS, () => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-disk-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const [command, ...args] = [...onSmallDisk(dir), 'true'];
  // Where an ordinary user may not mount anything, there is no way to get a small disk.
  const possible = spawnSync(command!, args).status === 0;

  it.runIf(possible)(
    'refuses with a clear error, does nothing partially, loses nothing, and continues once there is room',
    async () => {
      const program = new Program('full-disk', { dir, stay: ROUNDS.repeats > 0 ? 15_000 : 0 }, onSmallDisk(dir));
      expect(await program.exit()).toBe(0);
      const { accepted, refused, seen, runs } = JSON.parse(program.lines[0]!) as Story;
      const before = accepted.slice(0, accepted.indexOf('after'));
      expect(before.length).toBeGreaterThan(20);
      expect(refused.map(({ id }) => id)).toEqual(
        expect.arrayContaining(['shared-0', 'shared-3', 'large-0', 'large-39']),
      );
      for (const { code, message } of refused) {
        expect(code).toBe('STORE_FULL');
        expect(message).toMatch(/crore\.db: .*full/);
      }
      expect([...seen.jobs].sort()).toEqual([...before].sort());
      expect(Object.values(seen.counts).reduce((sum, n) => sum + n, 0)).toBe(before.length);
      expect(seen.complaints).toEqual(['STORE_FULL']);
      expect(accepted.filter((id) => runs[id] === undefined)).toEqual([]);
      if (ROUNDS.repeats === 0) expect(runs.held).toBe(1);
    },
  );
});
