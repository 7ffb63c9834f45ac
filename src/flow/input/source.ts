import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { readDocument } from './document.js';
import { loadModule } from './module.js';
import { readTables } from './tables.js';

export interface Source {
  file?: string;
  workload?: string;
  schedule?: string;
}

export const isModule = (file: string): boolean => /\.[cm]?[jt]s$/.test(file);

/** Reads the graph that a command line names: one file of any kind, or two tables. */
export async function readSource({ file, workload, schedule }: Source): Promise<Graph> {
  if (workload !== undefined) {
    if (file !== undefined) throw new CroreError('BAD_OPTION', 'give a file or --workload, not both');
    return readTables(workload, schedule);
  }
  if (schedule !== undefined) throw new CroreError('BAD_OPTION', '--schedule needs --workload');
  if (file === undefined)
    throw new CroreError('BAD_OPTION', 'no flow given: give a file (.yaml, .json, .ts, .js) or --workload FILE.csv');
  if (isModule(file)) return loadModule(file);
  if (/\.(ya?ml|json)$/.test(file)) return readDocument(file);
  if (file.endsWith('.csv')) return readTables(file, undefined);
  throw new CroreError('BAD_FLOW', `${file}: a flow must be a .yaml, .yml, .json, .csv, .ts, .js or .mjs file`);
}
