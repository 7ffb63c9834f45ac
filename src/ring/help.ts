export const HELP = `Usage: w8y [OPTIONS] executable [args...]

Takes the next free item of a ring, locks it, and runs the executable; {} in the arguments is replaced by the item.
Options end at the executable.

  -u, --redis-url=URL       where the ring is: redis://, rediss://, unix:///path, redis+sentinel://, redis+cluster://,
                            postgres://, sqlite:FILE, or @FILE, a file that contains one of these
                            (default: $REDIS_URL, else redis://localhost:6379)
  -k, --key-prefix=PREFIX   prefix of all keys; a ':' is appended if it lacks one
  -x, --key-expiry=SECONDS  a lock that is not refreshed ends after this time, at least 1 (default: 5)
  -e, --env-var=NAME        also set this environment variable to the item
  -c, --continuous          continue after each child; wait when no item is free
  -i, --exit-codes=CODE     continue only after these codes; may be repeated (default: 0)
  -q, --quiet               no lines of w8y on stderr
  -f, --log-file=FILE       append the lines of w8y to a file, also with -q
  -t, --no-log-timestamps   log lines without the time
  -h, --help                print this help

Beyond the original:
  -j, --jobs=N              run this many children at once (default: 1)
      --rest=SECONDS        do not process an item again for this long
      --timeout=SECONDS     stop a child that runs longer: SIGTERM, grace, SIGKILL
      --grace=SECONDS       time between SIGTERM and SIGKILL (default: 2)
      --max-items=N         stop after this many items; without -c, go around the ring at most once
      --joblog=FILE         append a tab-separated line per child: item, start, seconds, exit, signal
      --stdin=KIND          inherit, null or item: what the child reads (default: inherit)
      --on-lost=ACTION      term or warn: what to do when the lock is lost (default: term)
      --lock-name=NAME      locks are called PREFIX:NAME:ITEM (default: lock; older programs use proc)

Exit codes: the child's own, 128+n when signal n killed it, 0 nothing to do, 2 bad usage or store not reachable,
75 lock lost, 126 cannot be run, 127 not found.
`;
