import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { CapturedOutput } from '../../process/captured-output.js';
import { whenDrained } from '../../process/drained.js';
import type { OrphanGuard } from '../../process/orphan-guard.js';
import { groupLives } from '../../process/process-group.js';
import { uptime } from '../run/clock.js';
import { endOfCommand, START, whenFree } from './shell-script.js';

export interface ShellEnd {
  exit: number;
  stdout: CapturedOutput;
  stderr: CapturedOutput;
}

export interface ShellCommand {
  script: string;
  /** Called when it begins, if it was handed over while the one before it ran. */
  begins?: () => void;
  /** Without an end, it never began. */
  ended: (end?: ShellEnd) => void;
}

interface ShellSetup {
  guard: OrphanGuard;
  /** A random word that no command knows. */
  mark: string;
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** Called when nothing is left to do, and when the shell is gone. */
  idle: (shell: Shell) => void;
}

/** How long a command may take to exit after SIGTERM before it is killed, in milliseconds. */
const GRACE = 3_000;
/** How long the kernel may take to end killed processes. */
const AFTER_KILL = 1_000;
/** A command is handed over ahead only behind one command, and only if the shell's last one was over this soon. */
const QUICK = 20;

/** A command in the line of its shell. */
class Entry {
  readonly stdout: CapturedOutput;
  readonly stderr = new CapturedOutput();
  began: number | undefined;
  /** It was given back: the shell skips it. */
  isGivenBack = false;

  constructor(
    readonly command: ShellCommand,
    mark: string,
  ) {
    this.stdout = new CapturedOutput(`\0${mark} `);
  }
}

/**
 * A long-lived `sh` that runs one command after another, isolated from their effects: starting a process from Node
 * blocks the event loop for more than a millisecond, writing a line to a pipe for some microseconds. The shell leads a
 * process group. To stop a command, the caller kills the group; the next command gets a new shell.
 *
 * It takes a second command while the first runs, so that it need not wait for Node between them: 1,000 times `/bin/true`
 * at -j 2 take 4 and 7 % less time (two comparisons on busy cores) and as much CPU time. That one can be given back: a signal makes the shell skip it. The shell prints the mark of a command before it looks at the next one, so
 * when the signal is sent and the mark has not arrived after that, the next command is certain to be skipped. The
 * two have separate pipes for stderr, which has no marks.
 */
export class Shell {
  readonly #child: ChildProcess;
  /** Commands whose mark has not arrived; the first one runs. */
  readonly #line: Entry[] = [];
  /** Number of commands whose mark has arrived, but perhaps not all of their stderr. */
  #draining = 0;
  /** The command that writes to each of the two pipes. */
  readonly #writers: (Entry | undefined)[] = [];
  #pipe = 0;
  #isHeld = false;
  #lastTook = Number.POSITIVE_INFINITY;
  #killer: NodeJS.Timeout | undefined;
  /** The time after which it no longer waits for the processes of the group. */
  #until = Number.POSITIVE_INFINITY;
  #dead = false;
  /** Number of commands it has taken. */
  count = 0;
  readonly born = uptime();

  constructor(private readonly setup: ShellSetup) {
    const { guard, env, cwd } = setup;
    guard.ready();
    const child = spawn('sh', ['-s'], { detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], env, cwd });
    this.#child = child;
    if (child.pid) guard.watch(child.pid);
    child.stdin!.on('error', () => {});
    child.stdout!.on('data', (chunk: Buffer) => this.#heard(chunk));
    [child.stderr!, child.stdio[3] as Readable].forEach((stream, pipe) => {
      stream.on('data', (chunk: Buffer) => this.#writers[pipe]?.stderr.add(chunk)).on('error', () => {});
    });
    child.once('error', (error) => this.#gone(127, `cannot run sh: ${error.message}`));
    child.once('exit', (code, signal) => this.#exited(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** It is being stopped and takes no more commands. */
  get stopped(): boolean {
    return this.#killer !== undefined;
  }

  get idle(): boolean {
    return this.#line.length === 0 && this.#draining === 0;
  }

  /** Whether it takes a command behind the one that runs. */
  get takesAhead(): boolean {
    return this.#line.length === 1 && this.#draining === 0 && this.#lastTook < QUICK && !this.#isHeld && !this.stopped;
  }

  /** How long the first command has run, in milliseconds, if another one waits behind it. */
  get waited(): number {
    return this.#line.length > 1 ? uptime() - (this.#line[0]!.began ?? 0) : 0;
  }

  /** Runs a command, now or behind the one that runs; returns how to stop it and how to get it back if it has not begun. */
  run(command: ShellCommand): { stop: () => void; giveBack: () => void } {
    const { mark } = this.setup;
    const entry = new Entry(command, mark);
    const body = `${command.script}${this.#pipe === 0 ? ' 3>&-' : ' 2>&3 3>&-'}\n${endOfCommand(mark)}`;
    let text = body;
    if (this.#line.length > 0) text = whenFree(body, mark);
    else {
      // What was held is over: a new start.
      if (this.count === 0 || this.#isHeld) text = START + body;
      this.#isHeld = false;
      entry.began = uptime();
    }
    this.#writers[this.#pipe] = entry;
    this.#pipe = 1 - this.#pipe;
    this.#line.push(entry);
    this.count++;
    this.#child.stdin!.write(text);
    return { stop: () => this.#stop(entry), giveBack: () => this.#giveBack(entry) };
  }

  /** Gives back the command that waits. */
  giveBack(): void {
    if (this.#line[1]) this.#giveBack(this.#line[1]);
  }

  /** Kills an idle shell and everything its commands left in its group, and does not wait for those processes. */
  close(): void {
    this.#signal('SIGKILL');
    this.#child.unref();
    for (const stream of this.#child.stdio) (stream as unknown as { unref?: () => void } | null)?.unref?.();
  }

  /** If another command waits behind it or before it, it must be certain first which of them runs. */
  #stop(entry: Entry): void {
    if (this.#line.length === 1 && this.#line[0] === entry) this.#end();
    else if (this.#line.includes(entry)) {
      this.#hold(() => {
        if (this.#line[0] === entry) this.#end();
        else this.#resolveWaiting(entry);
      });
    }
  }

  #giveBack(entry: Entry): void {
    if (this.#line[1] === entry && !entry.isGivenBack) this.#hold(() => this.#resolveWaiting(entry));
  }

  #resolveWaiting(entry: Entry): void {
    if (this.#line[1] !== entry || entry.isGivenBack) return;
    entry.isGivenBack = true;
    entry.command.ended();
  }

  /** Makes the shell skip what waits, and calls back when the marks of all commands that ended before have arrived. */
  #hold(then: () => void): void {
    if (!this.#isHeld) this.#child.kill('SIGUSR1');
    this.#isHeld = true;
    whenDrained(then);
  }

  /** Stops the command and everything it started: SIGTERM first, SIGKILL after the grace period. */
  #end(): void {
    this.#signal('SIGTERM');
    if (this.#killer) return;
    this.#until = uptime() + GRACE + AFTER_KILL;
    this.#killer = setTimeout(() => this.#signal('SIGKILL'), GRACE);
  }

  /**
   * The mark is printed to stdout only: a second one on stderr would cause another wakeup. Everything on stderr was
   * written before the mark. Without a command, it is output of a process that an earlier command left running.
   */
  #heard(chunk: Buffer): void {
    let rest: Buffer | undefined = chunk;
    while (rest && this.#line[0]) {
      const entry: Entry = this.#line[0];
      rest = entry.stdout.add(rest);
      if (entry.stdout.exit === undefined) return;
      this.#line.shift();
      this.#marked(entry, entry.stdout.exit);
    }
  }

  #marked(entry: Entry, exit: number): void {
    if (Number.isNaN(exit)) {
      if (this.idle) this.setup.idle(this);
      if (!entry.isGivenBack) entry.command.ended();
      return;
    }
    if (entry.began === undefined) this.#begin(entry);
    this.#lastTook = uptime() - entry.began!;
    // After a failure the shell skips what waits: nothing may start that was not meant to.
    if (this.#line[0] && exit === 0 && !this.#isHeld) this.#begin(this.#line[0]);
    this.#draining++;
    whenDrained(() => {
      this.#draining--;
      if (this.idle) this.setup.idle(this);
      entry.command.ended({ exit, stdout: entry.stdout, stderr: entry.stderr });
    });
  }

  #begin(entry: Entry): void {
    entry.began = uptime();
    entry.command.begins?.();
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid!, signal);
    } catch {
      // No process is left in the group.
    }
  }

  /**
   * The shell itself has exited: it was stopped, or its own command killed it. Other processes of its group may need
   * the grace period.
   */
  #exited(exit: number): void {
    this.#dead = true;
    const wait = this.#killer !== undefined && uptime() < this.#until;
    if (wait && groupLives(this.#child.pid!)) setTimeout(() => this.#exited(exit), 20);
    else whenDrained(() => this.#gone(exit, 'its shell was killed'));
  }

  #gone(exit: number, why: string): void {
    this.#dead = true;
    clearTimeout(this.#killer);
    this.#signal('SIGKILL');
    if (this.#child.pid) this.setup.guard.forget(this.#child.pid);
    const [first, ...others] = this.#line.splice(0);
    if (!first) return; // it was idle, or its last command has finished
    this.setup.idle(this);
    for (const entry of others) if (!entry.isGivenBack) entry.command.ended();
    if (this.#killer === undefined) first.stderr.note(why);
    if (!first.isGivenBack)
      first.command.ended({ exit: exit === 0 ? 1 : exit, stdout: first.stdout, stderr: first.stderr });
  }
}
