import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Graph } from '../graph/graph.js';
import type { Journal, Memory } from './journal.js';

const SHORT = 16;
const BATCH = 5_000;

export function hash(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Whether a node would run, and why. */
export interface CacheDecision {
  runs: boolean;
  why: string[];
}

/** The cache key of a node that must run. */
interface Fresh {
  key: string;
  parts: Record<string, string>;
  /** A map node that declares no outputs or whose outputs are unchanged: its completed parts may stay cached. */
  intact: boolean;
}

/**
 * Remembers from run to run what each node's result depended on: its command, its files, the results of its upstream
 * nodes. A node for which none of that has changed is not run.
 */
export class Cache {
  readonly #digests: string[];
  readonly #fresh = new Map<number, Fresh>();
  readonly #files = new Map<string, { stamp: string; hash: string }>();
  readonly #learnt: [string, Memory][] = [];
  /** Every node runs; only the recorded seconds are used. */
  readonly #force: boolean;

  constructor(
    private readonly graph: Graph,
    private readonly journal: Journal,
    private readonly memories: Map<string, Memory>,
    private readonly cwd: string,
    force: boolean,
  ) {
    this.#force = force;
    this.#digests = new Array(graph.ids.length).fill('');
  }

  static async open(graph: Graph, journal: Journal, cwd: string, force = false): Promise<Cache> {
    return new Cache(graph, journal, await journal.recall(graph.name), cwd, force);
  }

  /** Recorded run time in seconds, by node. */
  get seconds(): Map<string, number> {
    const seconds = new Map<string, number>();
    for (const [node, memory] of this.memories) seconds.set(node, memory.seconds);
    return seconds;
  }

  /** The cached record of a node that need not run; undefined when it must run. */
  look(node: number): Memory | undefined {
    const parts = this.#partsOf(node);
    const key = keyOf(parts);
    const memory = this.memories.get(this.graph.ids[node]!);
    const { options, map } = this.graph.specs[node]!;
    const same = () => this.#outputsAreThere(node) && memory?.parts.outputs === this.#outputs(node);
    if (!this.#force && memory?.key === key && same()) {
      this.#digests[node] = memory.digest;
      return memory;
    }
    this.#fresh.set(node, { key, parts, intact: map !== undefined && (!options.outputs || same()) });
    return undefined;
  }

  /** The cached record of one part of a map node, if neither its item nor anything else has changed. */
  lookPart(node: number, part: number, item: unknown): Memory | undefined {
    const fresh = this.#fresh.get(node);
    if (this.#force || !fresh?.intact) return undefined;
    const memory = this.memories.get(this.#partId(node, part));
    return memory?.key === keyOf(this.#partsOfPart(node, fresh, item)) ? memory : undefined;
  }

  /** Records that a node ran: the digest that its dependents see, and its cache record. */
  ran(node: number, value: unknown, seconds: number): void {
    const { outputs, cache } = this.graph.specs[node]!.options;
    const made = this.#outputs(node);
    // If nothing shows what it produced, its dependents must assume that it produced something new.
    const silent = value === undefined || (this.graph.specs[node]!.map !== undefined && isSilent(value));
    const seen = silent && !outputs ? `${Date.now()}.${Math.random()}` : `${made}\n${JSON.stringify(value ?? null)}`;
    const digest = hash(seen).slice(0, SHORT);
    this.#digests[node] = digest;
    const fresh = this.#fresh.get(node);
    if (!cache || !fresh) return;
    this.#fresh.delete(node);
    this.#learn(this.graph.ids[node]!, fresh.key, { ...fresh.parts, outputs: made }, digest, value, seconds);
  }

  /** Records that a part of a map node ran. */
  ranPart(node: number, part: number, item: unknown, value: unknown, seconds: number): void {
    const fresh = this.#fresh.get(node);
    if (!this.graph.specs[node]!.options.cache || !fresh) return;
    const parts = this.#partsOfPart(node, fresh, item);
    this.#learn(this.#partId(node, part), keyOf(parts), parts, '', value, seconds);
  }

  /** Records that the node was completed in an earlier run of the same flow. */
  kept(node: number, value: unknown): void {
    const memory = this.memories.get(this.graph.ids[node]!);
    this.#digests[node] = memory?.digest ?? hash(JSON.stringify(value ?? null)).slice(0, SHORT);
  }

  async save(): Promise<void> {
    while (this.#learnt.length > 0) await this.journal.remember(this.graph.name, this.#learnt.splice(0, BATCH));
  }

  /** The reasons, as far as they can be known before anything has run. */
  why(node: number, decisions = new Map<number, CacheDecision>()): CacheDecision {
    const { upAt, ups } = this.graph;
    for (const one of this.#upstreams(node)) {
      if (decisions.has(one)) continue;
      const rerun: number[] = [];
      for (let e = upAt[one]!; e < upAt[one + 1]!; e++) if (decisions.get(ups[e]!)!.runs) rerun.push(ups[e]!);
      decisions.set(one, this.#decision(one, rerun));
    }
    return decisions.get(node)!;
  }

  /** The node and all its dependencies, upstream first. */
  #upstreams(node: number): number[] {
    const wanted = new Set([node]);
    for (const one of wanted) {
      for (let e = this.graph.upAt[one]!; e < this.graph.upAt[one + 1]!; e++) wanted.add(this.graph.ups[e]!);
    }
    return wanted.size === 1 ? [node] : [...this.graph.order].filter((one) => wanted.has(one));
  }

  #decision(node: number, rerun: readonly number[]): CacheDecision {
    const { ids, specs } = this.graph;
    const { outputs, cache } = specs[node]!.options;
    const memory = this.memories.get(ids[node]!);
    if (!cache) return { runs: true, why: ['it is not cached: it runs every time'] };
    if (!memory) return { runs: true, why: ['it has never completed'] };
    const why = rerun.map((up) => `'${ids[up]}', which it needs, would run`);
    const parts = this.#partsOf(node);
    for (const [name, part] of Object.entries(parts)) {
      if (name.startsWith('need ') || memory.parts[name] === part) continue;
      why.push(name in memory.parts ? `its ${name} has changed` : `its ${name} is new`);
    }
    for (const name of Object.keys(memory.parts)) {
      if (!(name in parts) && name !== 'outputs') why.push(`its ${name} is gone`);
    }
    for (const file of outputs ?? [])
      if (!existsSync(this.#path(node, file))) why.push(`its output ${file} is missing`);
    if (why.length === 0 && memory.parts.outputs !== this.#outputs(node))
      why.push('its outputs were changed by something else');
    if (why.length > 0) return { runs: true, why };
    this.#digests[node] = memory.digest;
    return { runs: false, why: [`nothing has changed since ${new Date(memory.at).toISOString()}`] };
  }

  #partsOf(node: number): Record<string, string> {
    const { ids, specs, env, upAt, ups } = this.graph;
    const { work, options, map } = specs[node]!;
    const command =
      work.kind === 'shell'
        ? JSON.stringify(work.run)
        : work.kind === 'function'
          ? String(work.written ?? work.call)
          : JSON.stringify([work.queue, work.payload]);
    const parts: Record<string, string> = {
      command: hash(map === undefined ? command : `${map}\n${command}`).slice(0, SHORT),
    };
    const variables = { ...env, ...options.env };
    if (Object.keys(variables).length > 0) parts.env = hash(JSON.stringify(variables)).slice(0, SHORT);
    for (const file of options.inputs ?? []) parts[`input ${file}`] = this.#fileHash(this.#path(node, file));
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) parts[`need ${ids[ups[e]!]}`] = this.#digests[ups[e]!]!;
    return parts;
  }

  #partId(node: number, part: number): string {
    return `${this.graph.ids[node]}[${part}]`;
  }

  /** The same parts as its node's, with the item instead of the list. */
  #partsOfPart(node: number, fresh: Fresh, item: unknown): Record<string, string> {
    const { [`need ${this.graph.specs[node]!.map}`]: _list, ...parts } = fresh.parts;
    return { ...parts, item: hash(JSON.stringify(item ?? null)).slice(0, SHORT) };
  }

  #learn(
    id: string,
    key: string,
    parts: Record<string, string>,
    digest: string,
    value: unknown,
    seconds: number,
  ): void {
    const memory: Memory = { key, parts, digest, seconds, at: Date.now() };
    if (value !== undefined) memory.value = value;
    this.#learnt.push([id, memory]);
  }

  #outputsAreThere(node: number): boolean {
    return (this.graph.specs[node]!.options.outputs ?? []).every((file) => existsSync(this.#path(node, file)));
  }

  #outputs(node: number): string {
    const { outputs } = this.graph.specs[node]!.options;
    if (!outputs) return '';
    return hash(outputs.map((file) => this.#fileHash(this.#path(node, file))).join()).slice(0, SHORT);
  }

  #path(node: number, file: string): string {
    return resolve(this.cwd, this.graph.specs[node]!.options.cwd ?? '', file);
  }

  /** Reads a file again only if its modification time or size shows that it may have changed. */
  #fileHash(path: string): string {
    const stamp = stampOf(path);
    if (stamp === undefined) return 'missing';
    const known = this.#files.get(path);
    if (known?.stamp === stamp) return known.hash;
    const found = stamp === 'directory' ? stamp : hashFile(path);
    this.#files.set(path, { stamp, hash: found });
    return found;
  }
}

function stampOf(path: string): string | undefined {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return statSync(path).isDirectory() ? 'directory' : `${mtimeMs} ${size} ${ino}`;
  } catch {
    return undefined;
  }
}

/** Whether the value is a list in which some part has no result. */
function isSilent(value: unknown): boolean {
  return Array.isArray(value) && value.includes(null);
}

function keyOf(parts: Record<string, string>): string {
  return hash(
    Object.entries(parts)
      .map((part) => part.join('='))
      .join('\n'),
  ).slice(0, 32);
}

/** Hashes in chunks, because a file may be larger than memory. */
function hashFile(path: string): string {
  const sum = createHash('sha256');
  const piece = Buffer.allocUnsafe(1_048_576);
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) sum.update(piece.subarray(0, read));
    return sum.digest('hex').slice(0, SHORT);
  } catch {
    return 'unreadable';
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
