import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { badFlow, GraphBuilder } from '../graph/graph-builder.js';
import { DEFAULT_OPTIONS } from '../graph/node-spec.js';
import { readCsv } from './csv.js';

/** Reads two tables: `id,command`, and `from,to` for the order between nodes. */
export function readTables(workload: string, schedule: string | undefined): Graph {
  const builder = new GraphBuilder((id, need) => find(workload, schedule, id, need));
  readTable(workload, ['id', 'command'], ([id, command], line) => {
    const place = `${workload}:${line}`;
    if (command!.trim() === '') throw badFlow(place, `node '${id}' has no command`);
    builder.node(id!, { work: { kind: 'shell', run: command! }, options: DEFAULT_OPTIONS }, place);
  });
  if (schedule !== undefined) readTable(schedule, ['from', 'to'], ([from, to]) => builder.edge(from!, to!));
  return builder.finish({ name: basename(workload).replace(/\.[^.]*$/, '') });
}

function readTable(file: string, header: [string, string], row: (fields: string[], line: number) => void): void {
  let places: [number, number] | undefined;
  readCsv(readText(file), file, (fields, line) => {
    if (places === undefined) {
      places = [fields.indexOf(header[0]), fields.indexOf(header[1])];
      if (places.includes(-1))
        throw badFlow(`${file}:${line}`, `the header must contain ${header.join(',')}, not '${fields.join(',')}'`);
      return;
    }
    const [first, second] = [fields[places[0]], fields[places[1]]];
    if (first === undefined || second === undefined)
      throw badFlow(`${file}:${line}`, `expected the fields ${header.join(',')}, found ${fields.length} field(s)`);
    row([first, second], line);
  });
  if (places === undefined) throw badFlow(file, `the file is empty: expected the header ${header.join(',')}`);
}

/**
 * Reads the files again to find the line for an error message: storing a line for each of a million edges would cost
 * more.
 */
function find(workload: string, schedule: string | undefined, id: string, need: string | undefined): string {
  const [file, header, wanted] =
    need === undefined || schedule === undefined
      ? [workload, ['id', 'command'] as [string, string], (row: string[]) => row[0] === id]
      : [schedule, ['from', 'to'] as [string, string], (row: string[]) => row[0] === need && row[1] === id];
  let place = file;
  readTable(file, header, (fields, line) => {
    if (place === file && wanted(fields)) place = `${file}:${line}`;
  });
  return place;
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : (code ?? String(error));
    throw new CroreError('BAD_FLOW', `cannot read ${file}: ${why}`);
  }
}
