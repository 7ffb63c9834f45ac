import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

/** Something that gets input from outside: `feed` throws, or rejects, if it behaves badly. */
export interface Target<T = unknown> {
  name: string;
  input: fc.Arbitrary<T>;
  feed: (input: T) => void | Promise<void>;
}

/** Where a failing input was found: fast-check produces it again from these. */
interface Found {
  seed: number;
  path: string;
  input: string;
}

const FEWEST = 5;

function corpusOf(name: string): string {
  return fileURLToPath(new URL(`./corpus/${name.replaceAll(' ', '-')}.json`, import.meta.url));
}

function known(name: string): Found[] {
  const file = corpusOf(name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Found[]) : [];
}

/**
 * Feeds a target for some time: first the inputs that failed earlier, then new ones. An input that fails is made as small as possible
 * and kept in the corpus, unless `keep` is false. Returns how many inputs were tried.
 */
export async function fuzz<T>({ name, input, feed }: Target<T>, ms: number, { keep = true } = {}): Promise<number> {
  const property = fc.asyncProperty(input, async (value) => void (await feed(value)));
  for (const { seed, path } of known(name)) await fc.assert(property, { seed, path, endOnFailure: true });
  // On a busy machine the first input may take longer than all the time there is.
  const first = await fc.check(property, { numRuns: FEWEST });
  const limits = { interruptAfterTimeLimit: ms, markInterruptAsFailure: false };
  const details = first.failed ? first : await fc.check(property, { numRuns: Number.MAX_SAFE_INTEGER, ...limits });
  if (details.failed && details.counterexample !== null) {
    const found = {
      seed: details.seed,
      path: details.counterexamplePath!,
      input: fc.stringify(details.counterexample),
    };
    if (keep) writeFileSync(corpusOf(name), `${JSON.stringify([...known(name), found], null, 2)}\n`);
    throw new Error(`${name}: ${found.input}`, { cause: details.errorInstance });
  }
  return FEWEST + details.numRuns;
}
