import type { ChildProcess } from 'node:child_process';
import type { Log } from './log.js';

/** Every child has this variable, so that its descendants can be found in /proc even if they start their own sessions. */
export const MARK = 'W8Y_RUN';

/**
 * Node does not end a child when its parent is killed with SIGKILL, so one small shell per wrapper waits for the end of
 * a pipe that only the wrapper holds. The wrapper sends it the process groups as they start and end, and it kills the
 * remaining ones. A child that was just forked holds a copy of the pipe until its exec: so when the pipe ends, every
 * child has the mark.
 */
const SCRIPT = `
trap '' HUP INT QUIT TERM USR1 USR2 TSTP
cd /
live=' '
while read -r sign group; do
  case $sign in
    +) live="$live$group " ;;
    -) live="\${live%% $group *} \${live#* $group }" ;;
    .) exit 0 ;;
  esac
done
for group in $live; do kill -KILL "-$group"; done 2>/dev/null
# Some greps do not look past the first NUL of a file.
if printf 'a\\0b' | grep -qF b; then
  marked() { grep -lsF "$1" /proc/[0-9]*/environ; }
else
  marked() {
    for file in /proc/[0-9]*/environ; do
      case $(tr '\\0' ' ' <"$file") in *"$1"*) echo "$file" ;; esac
    done 2>/dev/null
  }
fi
round=0
while [ -r /proc/self/environ ] && [ $round -lt 100 ]; do
  found=$(marked "$1")
  [ -n "$found" ] || exit 0
  for file in $found; do
    pid=\${file#/proc/}
    kill -KILL "\${pid%/environ}"
  done 2>/dev/null
  round=$((round + 1))
  sleep 0.05 2>/dev/null || sleep 1
done
`;

export class OrphanGuard {
  private shell: ChildProcess | undefined;
  private readonly groups = new Set<number>();
  private closed = false;

  constructor(
    private readonly spawn: typeof import('node:child_process').spawn,
    private readonly mark: string,
    private readonly log: Log,
  ) {}

  /** Call this before a child is started: the pipe must exist when it forks. */
  ready(): void {
    if (!this.shell && !this.closed) this.start();
  }

  watch(group: number): void {
    this.groups.add(group);
    this.send(`+ ${group}`);
  }

  forget(group: number): void {
    this.groups.delete(group);
    this.send(`- ${group}`);
  }

  close(): void {
    this.closed = true;
    this.send('.');
  }

  private send(line: string): void {
    this.shell?.stdin?.write(`${line}\n`);
  }

  private start(): void {
    // It runs in its own session: a signal that kills the wrapper's process group must leave the guard alive. It does
    // not inherit the mark of a wrapper around this one: the guard of that wrapper would kill ours as a part of its
    // process tree.
    const { [MARK]: _, ...env } = process.env;
    const shell = this.spawn('sh', ['-c', SCRIPT, 'w8y-guard', this.mark], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env,
    });
    this.shell = shell;
    shell.on('error', (error) => this.log(`no guard against SIGKILL: cannot run sh: ${error.message}`));
    shell.on('exit', () => this.restart(shell));
    shell.stdin?.on('error', () => {});
    shell.unref();
    for (const group of this.groups) this.send(`+ ${group}`);
  }

  private restart(dead: ChildProcess): void {
    if (this.shell !== dead || this.closed) return;
    this.shell = undefined;
    if (this.groups.size > 0) this.start();
  }
}
