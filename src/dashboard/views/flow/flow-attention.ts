import type { Attention, FlowRow, FlowsView } from '../../api.js';
import { within } from '../within.js';

/** How long what is known of the flows is good enough, and how long the first answer waits for them, in milliseconds. */
const FRESH = 5_000;
const PATIENCE = 20;
/** A flow that ended longer ago is history, and as many are named. */
const RECENT = 24 * 3_600_000;
const MOST = 10;

/** Flows that failed or lost their runner, for the first screen; read beside it, so that they never delay it. */
export class FlowAttention {
  #known: Attention[] = [];
  #until = 0;
  #reading: Promise<void> | undefined;

  /** `read` lists the flows, newest first. */
  constructor(private readonly read: () => Promise<FlowsView>) {}

  async now(): Promise<readonly Attention[]> {
    if (performance.now() < this.#until) return this.#known;
    this.#reading ??= this.#look().finally(() => {
      this.#reading = undefined;
    });
    await within(PATIENCE, this.#reading);
    return this.#known;
  }

  /** A store whose flows cannot be read says so on their own page. */
  async #look(): Promise<void> {
    const found = await this.read().catch(() => undefined);
    if (found) this.#known = attentionToFlows(found);
    this.#until = performance.now() + FRESH;
  }
}

/** Only the newest flow of each file: an earlier one that failed has been run again. */
function attentionToFlows({ now, flows }: FlowsView): Attention[] {
  const seen = new Set<string>();
  const found: Attention[] = [];
  for (const flow of flows) {
    const source = JSON.stringify([flow.name, flow.file]);
    if (seen.has(source)) continue;
    seen.add(source);
    const text = now - (flow.finishedAt ?? flow.createdAt) < RECENT ? problemOf(flow) : undefined;
    if (text === undefined) continue;
    const { id, name, file } = flow;
    found.push({ kind: 'flow', urgent: flow.state === 'failed', flow: { id, name, file }, text });
    if (found.length >= MOST) break;
  }
  return found;
}

function problemOf({ state, counts }: FlowRow): string | undefined {
  if (state === 'interrupted') return 'The runner of this flow was stopped or killed.';
  if (state !== 'failed') return undefined;
  const failed = counts.failed ?? 0;
  return `This flow failed${failed > 0 ? ` (${failed === 1 ? 'one node' : `${failed} nodes`})` : ''}.`;
}
