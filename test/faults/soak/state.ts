import { percentile } from '../history/recovery.js';
import type { Fault, Tally } from './tally.js';

/** The sums of all rounds: what is kept between two runs, and what the report is made of. */
export interface SoakState {
  store: string;
  planned: number;
  jobs: number;
  rounds: number;
  ms: number;
  faults: Record<string, number>;
  lost: number;
  settledTwice: number;
  repeated: number;
  unexplained: number;
  /** Ordinary jobs that became dead because their workers were killed too often. */
  crashed: number;
  /** A sample of bounded size. */
  recovery: number[];
  recovered: number;
  memory: { jobs: number; mb: Record<string, number> }[];
  leftOver: string[];
  violations: string[];
}

const SAMPLE = 10_000;

export function emptyState(store: string, planned: number): SoakState {
  const sums = {
    jobs: 0,
    rounds: 0,
    ms: 0,
    lost: 0,
    settledTwice: 0,
    repeated: 0,
    unexplained: 0,
    crashed: 0,
    recovered: 0,
  };
  return { store, planned, ...sums, faults: {}, recovery: [], memory: [], leftOver: [], violations: [] };
}

export function addRound(
  state: SoakState,
  round: Tally,
  ms: number,
  faults: readonly Fault[],
  mb: Record<string, number>,
): void {
  state.rounds += 1;
  state.ms += ms;
  for (const sum of ['jobs', 'lost', 'settledTwice', 'repeated', 'unexplained', 'crashed'] as const)
    state[sum] += round[sum];
  for (const { kind } of faults) state.faults[kind] = (state.faults[kind] ?? 0) + 1;
  for (const time of round.recovery) sample(state, time);
  state.memory.push({ jobs: state.jobs, mb });
  state.violations.push(...round.violations);
}

/** Each recovery has the same chance to be in the sample. */
function sample(state: SoakState, time: number): void {
  state.recovered += 1;
  if (state.recovery.length < SAMPLE) state.recovery.push(time);
  else {
    const place = Math.floor(Math.random() * state.recovered);
    if (place < SAMPLE) state.recovery[place] = time;
  }
}

const count = (n: number) => n.toLocaleString('en');

/** The report, in Markdown. */
export function soakReport(state: SoakState): string {
  const seconds = state.ms / 1_000;
  const recovery = (share: number) => `${(percentile(state.recovery, share) / 1_000).toFixed(1)} s`;
  const at = (share: number) => state.memory.find(({ jobs }) => jobs >= state.jobs * share)?.mb ?? {};
  const memory = [0.1, 0.5, 1].map(
    (share) =>
      `at ${share * 100} %: ${Object.entries(at(share))
        .map(([name, mb]) => `${name} ${mb}`)
        .join(', ')}`,
  );
  const rows = [
    [
      'jobs',
      `${count(state.jobs)}${state.jobs < state.planned ? ` of ${count(state.planned)} planned` : ''}, in ${state.rounds} rounds`,
    ],
    ['rate', `${count(Math.round(state.jobs / seconds))} jobs/s, ${count(Math.round(seconds))} s in all`],
    [
      'faults',
      Object.entries(state.faults)
        .map(([kind, n]) => `${kind} ${count(n)}`)
        .join(', '),
    ],
    ['lost', count(state.lost)],
    ['settled twice', count(state.settledTwice)],
    ['runs beyond those planned', `${count(state.repeated)}, not explained by a fault ${count(state.unexplained)}`],
    ['dead because three of their workers were killed', count(state.crashed)],
    [
      'jobs of killed workers claimed again',
      `${count(state.recovered)}, after p50 ${recovery(0.5)}, p99 ${recovery(0.99)}`,
    ],
    ['memory, MB', memory.join('; ')],
    ['left over', state.leftOver.join(', ') || 'nothing'],
    ['verdict', state.violations.length === 0 ? 'ok' : state.violations.join('; ')],
  ];
  return [
    `| soak | ${state.store} |`,
    '| --- | --- |',
    ...rows.map(([name, value]) => `| ${name} | ${value} |`),
    '',
  ].join('\n');
}
