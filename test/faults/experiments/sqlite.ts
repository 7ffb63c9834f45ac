import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';
import { until } from '../../support/wait.js';
import type { Event } from '../history/events.js';
import { percentile } from '../history/recovery.js';
import { adds } from '../history/rules.js';
import type { Experiment } from '../support/experiment.js';
import { type Lab, pause, works } from '../support/lab.js';

const JOB_IDS = fileURLToPath(new URL('../programs/job-ids.mjs', import.meta.url));

const SQLITE = { store: 'sqlite', short: false };

function integrity(file: string): string {
  const db = openDatabase(file);
  const [row] = db.prepare('PRAGMA integrity_check').all();
  db.close();
  return String(row!.integrity_check);
}

const midTransaction: Experiment = {
  ...SQLITE,
  row: 16,
  name: 'processes killed in the middle of transactions',
  async run(lab) {
    const url = lab.sqlite();
    const wanted = Number(process.env.CRORE_FAULT_KILLS ?? 120);
    let kills = 0;
    let corruptions = 0;
    const victims = async (kind: number) => {
      while (kills < wanted) {
        const program = kind % 2 ? await lab.worker({ url, take: 0 }) : lab.producer({ url, count: 100_000, each: 5 });
        if (kind % 2 === 0) await until('some acknowledgements', () => program.lines.length > 1 || !program.running);
        await pause(Math.random() * 150);
        await lab.kill(program);
        kills += 1;
        if (kills % 20 === 0 && integrity(join(lab.dir, 'crore.db')) !== 'ok') corruptions += 1;
      }
    };
    await Promise.all([victims(0), victims(1), victims(2)]);
    await lab.worker({ url, take: 0, options: { concurrency: 50 } });
    await lab.drained(url);
    const { violations, figures } = await lab.check(url);
    if (corruptions > 0) violations.push(`integrity_check failed ${corruptions} times`);
    return {
      figure: `${kills} kills, corruptions ${corruptions}, lost ${figures.lost} of ${figures.accepted}, run twice ${figures.doubled}`,
      violations,
    };
  },
};

/** Half of the processes add jobs, half of them work. */
const sharedBy = (words: string, processes: number, jobs: number, store = 'sqlite'): Experiment => ({
  store,
  short: false,
  row: 17,
  name: `${words} processes on one ${store === 'sqlite' ? 'file' : 'queue'}`,
  async run(lab) {
    const url = await lab.store(store);
    const half = Array.from({ length: processes / 2 });
    const producers = half.map(() => lab.producer({ url, count: jobs / half.length, each: 2, timeout: 20_000 }));
    // Twenty processes that start keep two cores busy for longer than the usual lease of experiments.
    await Promise.all(half.map(() => lab.worker({ url, take: 1, timeout: 20_000, options: { lease: 10_000 } })));
    await Promise.all(producers.map((producer) => until('it to finish', () => !producer.running, { within: 90_000 })));
    await lab.drained(url);
    const { violations, figures } = await lab.check(url);
    const events = lab.history();
    const escaped = events.filter(({ phase }) => phase === 'fail' || phase === 'unknown').length;
    if (escaped > 0) violations.push(`${escaped} calls failed`);
    if (figures.falseReaps > 0) violations.push(`${figures.falseReaps} jobs were taken from live workers`);
    const waits = durations(events);
    const ms = (share: number) => Math.round(percentile(waits, share));
    return {
      figure: `${figures.accepted} jobs, BUSY escaped ${escaped}, calls p50 ${ms(0.5)}, p99 ${ms(0.99)}, max ${ms(1)} ms`,
      violations,
    };
  },
});

function durations(events: readonly Event[]): number[] {
  const since = new Map<string, number>();
  return events.flatMap(({ process, verb, call, phase, at }) => {
    const key = `${process} ${verb} ${call}`;
    if (phase === 'invoke') since.set(key, at);
    return verb !== 'run' && phase === 'ok' ? [at - since.get(key)!] : [];
  });
}

const beforeSync: Experiment = {
  ...SQLITE,
  row: 19,
  name: 'no acknowledgement before its fdatasync (strace)',
  missing: () => (works('strace', '-V') ? undefined : 'strace is not installed'),
  async run(lab) {
    const trace = join(lab.dir, 'trace');
    const command = ['strace', '-f', '-s', '60', '-e', 'trace=fdatasync,fsync,pwrite64,write', '-o', trace];
    const count = 60;
    await lab.producer({ url: lab.sqlite(), count }, command).exit();
    let early = 0;
    let acknowledged = 0;
    // Writes to the database since the last sync, when an acknowledgement is written to the history.
    let unsynced = false;
    for (const line of readFileSync(trace, 'utf8').split('\n')) {
      if (/ (fdatasync|fsync)\(\d+\) += 0/.test(line) || / resumed>\) += 0/.test(line)) unsynced = false;
      if (/ pwrite64\(/.test(line)) unsynced = true;
      if (
        !/ write\(\d+, ".*\\"verb\\":\\"add\\",\\"phase\\":\\"ok/.test(line) &&
        !/ write\(\d+, "\{\\"process\\"/.test(line)
      )
        continue;
      const n = acknowledgement(lab, line);
      if (!n) continue;
      acknowledged += 1;
      if (unsynced) early += 1;
    }
    const violations = early > 0 ? [`${early} acknowledgements before their sync`] : [];
    if (acknowledged < count / 2) violations.push(`only ${acknowledged} acknowledgements were traced`);
    return { figure: `acknowledged ${acknowledged}, before their sync ${early}`, violations };
  },
};

/** Whether a traced write is the line of an accepted add: strace shows its beginning, with the number of the line. */
function acknowledgement(lab: Lab, line: string): boolean {
  const n = Number(/\\"n\\":(\d+)/.exec(line)?.[1]);
  return lab.history().some((event) => event.n === n && event.verb === 'add' && event.phase === 'ok');
}

const powerCut: Experiment = {
  ...SQLITE,
  row: 19,
  name: 'power cut: the image of an ext4 disk copied live',
  missing: () =>
    process.getuid?.() === 0 && existsSync('/dev/loop-control') && works('mkfs.ext4', '-V')
      ? undefined
      : 'needs root, loop devices and mkfs.ext4',
  async run(lab) {
    const image = join(lab.dir, 'disk.img');
    const disk = join(lab.dir, 'disk');
    const mount = (from: string, at: string) => {
      mkdirSync(at, { recursive: true });
      execFileSync('mount', ['-o', 'loop', from, at]);
      lab.onClose(() => works('umount', at));
    };
    execFileSync('dd', ['if=/dev/zero', `of=${image}`, 'bs=1M', 'count=48'], { stdio: 'ignore' });
    execFileSync('mkfs.ext4', ['-q', image]);
    mount(image, disk);
    const producer = lab.producer({ url: `sqlite:${join(disk, 'crore.db')}`, count: 1_000_000, each: 2, pause: 2 });
    await producer.line('accepted 2');
    let lost = 0;
    let promised = 0;
    const rounds = 5;
    for (let round = 0; round < rounds; round++) {
      await pause(300);
      const { accepted } = adds(lab.history());
      const copy = join(lab.dir, `cut-${round}.img`);
      copyFileSync(image, copy);
      const after = join(lab.dir, `after-${round}`);
      mount(copy, after);
      const ids = execFileSync(process.execPath, [JOB_IDS, join(after, 'crore.db')], { encoding: 'utf8' });
      const present = new Set(JSON.parse(ids) as string[]);
      promised += accepted.size;
      lost += [...accepted].filter((id) => !present.has(id)).length;
    }
    await lab.kill(producer);
    const violations = lost > 0 ? [`${lost} acknowledged jobs are not there after the cut`] : [];
    return { figure: `${rounds} cuts, lost ${lost} of ${promised} acknowledged`, violations };
  },
};

export const SQLITE_FAULTS: Experiment[] = [
  midTransaction,
  sharedBy('eight', 8, 8_000),
  sharedBy('twenty', 20, 4_000),
  sharedBy('eight', 8, 8_000, 'postgres'),
  beforeSync,
  powerCut,
];
