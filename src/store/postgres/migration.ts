import { readdirSync, readFileSync } from 'node:fs';
import type { SchemaNames } from './schema.js';

/** What a schema that we create consists of. */
export interface Layout {
  /** In messages. */
  what: string;
  /** The table with the format; it also tells whose schema it is. */
  formatTable: string;
  /** What leads from one format to the next: the files with the tables that it adds or changes, none if only functions have changed. */
  steps: readonly (readonly URL[])[];
  /** The files with functions, which are created again for every format. */
  functions: () => URL[];
  /** Functions for applications. All others carry the format in their name, so that a process cannot call those of another version of Crore. */
  forApplications: ReadonlySet<string>;
}

const SQL = new URL('./sql/', import.meta.url);

export const STORE_LAYOUT: Layout = {
  what: 'store',
  formatTable: 'crore_format',
  steps: [
    ['tables.sql'],
    ['tables/incoming.sql'],
    ['tables/flows.sql', 'tables/rings.sql'],
    [],
    [],
    ['tables/groups.sql'],
    ['tables/tasks.sql'],
    [],
  ].map((files) => files.map((name) => new URL(name, SQL))),
  functions: storeFunctions,
  forApplications: new Set(['add', 'add_in', 'add_ring_items', 'identity']),
};

/** The format of the tables and functions of a store; a newer one is refused. */
export const FORMAT = STORE_LAYOUT.steps.length;

/**
 * A script that brings a schema from one format to another, as one transaction; 0 is none at all. It waits for calls that are under way, and calls wait
 * for it. Processes of the older format are refused from then on: their functions are gone.
 */
export function migrationScript(names: SchemaNames, from: number, to = names.format): string {
  const { steps, functions, formatTable } = names.layout;
  const tables = steps.slice(from, to).flat();
  const format = `${names.quoted}.${formatTable}`;
  return [
    `select set_config('check_function_bodies', 'off', true), set_config('client_min_messages', 'warning', true), set_config('lock_timeout', '20s', true);`,
    from === 0 ? createSchema(names) : lockTables(names, from),
    dropFunctions(names),
    names.fill([...tables, ...functions()].map(read).join('\n')),
    `delete from ${format};`,
    `insert into ${format} values (${to});`,
  ].join('\n');
}

/** The same for psql. */
export function printedScript(names: SchemaNames, from: number, role?: string): string {
  const head =
    from === 0
      ? `-- Creates a store of Crore with format ${FORMAT} in schema ${names.quoted}.`
      : `-- Brings a store of Crore in schema ${names.quoted} from format ${from} to ${FORMAT}.`;
  const granted = role === undefined ? [] : [grants(names, role)];
  return [head, 'begin;', migrationScript(names, from), ...granted, 'commit;'].join('\n');
}

/** What a role needs that works with the store, and may not create anything. */
export function grants(names: SchemaNames, role: string): string {
  const to = `in schema ${names.quoted} to "${role.replaceAll('"', '""')}";`;
  return [
    `grant usage on schema ${names.quoted} to "${role.replaceAll('"', '""')}";`,
    `grant select, insert, update, delete on all tables ${to}`,
    `grant usage, select on all sequences ${to}`,
    `grant execute on all routines ${to}`,
  ].join('\n');
}

function read(file: URL): string {
  return readFileSync(file, 'utf8');
}

function storeFunctions(): URL[] {
  return readdirSync(SQL, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.sql') && !name.startsWith('tables'))
    .sort((a, b) => Number(b.startsWith('lib')) - Number(a.startsWith('lib')) || (a < b ? -1 : 1))
    .map((name) => new URL(name, SQL));
}

/** A role that may not create schemas can use one that was prepared for it. */
function createSchema(names: SchemaNames): string {
  const schema = literal(names.quoted);
  return `select pg_advisory_xact_lock(${names.lockClass}, 0);
do $do$ begin
  if to_regnamespace(${schema}) is null then create schema ${names.quoted}; end if;
  if exists (select 1 from pg_class where relnamespace = ${schema}::regnamespace) then
    raise exception 'the schema % already contains something', ${schema};
  end if;
end $do$;`;
}

/** Every call reads `queues`: all that are under way end first. Somebody else may have migrated it while we waited. */
function lockTables(names: SchemaNames, from: number): string {
  const format = `${names.quoted}.${names.layout.formatTable}`;
  return `lock table ${names.quoted}.queues, ${format} in access exclusive mode;
do $do$ begin
  if (select max(version) from ${format}) <> ${from} then
    raise exception 'the schema does not have the format ${from}';
  end if;
end $do$;`;
}

function dropFunctions(names: SchemaNames): string {
  return `do $do$ declare f record; begin
  for f in select p.oid::regprocedure as name from pg_proc p where pronamespace = ${literal(names.quoted)}::regnamespace loop
    execute 'drop routine ' || f.name || ' cascade';
  end loop;
end $do$;`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
