import { readdirSync, readFileSync } from 'node:fs';
import type { SchemaNames } from './schema.js';

const SQL = new URL('./sql/', import.meta.url);

/** What leads from one format to the next: the files with the tables that it adds or changes. Functions are created again for every format. */
export const STEPS: readonly (readonly string[])[] = [
  ['tables.sql'],
  ['tables/incoming.sql'],
  ['tables/flows.sql', 'tables/rings.sql'],
];

/** The format of the tables and functions; a newer one is refused. */
export const FORMAT = STEPS.length;

/**
 * A script that brings a schema from one format to another, as one transaction; 0 is none at all. It waits for calls that are under way, and calls wait
 * for it. Processes of the older format are refused from then on: their functions are gone.
 */
export function migrationScript(names: SchemaNames, from: number, to = FORMAT): string {
  const tables = STEPS.slice(from, to).flat().map(read);
  const format = `${names.quoted}.crore_format`;
  return [
    `select set_config('check_function_bodies', 'off', true), set_config('client_min_messages', 'warning', true), set_config('lock_timeout', '20s', true);`,
    from === 0 ? createSchema(names) : lockTables(names, from),
    dropFunctions(names),
    names.fill([...tables, ...functions()].join('\n')),
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
    `grant execute on all functions ${to}`,
  ].join('\n');
}

function read(name: string): string {
  return readFileSync(new URL(name, SQL), 'utf8');
}

function functions(): string[] {
  return readdirSync(SQL, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.sql') && !name.startsWith('tables'))
    .sort((a, b) => Number(b.startsWith('lib')) - Number(a.startsWith('lib')) || (a < b ? -1 : 1))
    .map(read);
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
  return `lock table ${names.quoted}.queues, ${names.quoted}.crore_format in access exclusive mode;
do $do$ begin
  if (select max(version) from ${names.quoted}.crore_format) <> ${from} then
    raise exception 'the schema does not have the format ${from}';
  end if;
end $do$;`;
}

function dropFunctions(names: SchemaNames): string {
  return `do $do$ declare f record; begin
  for f in select p.oid::regprocedure as name from pg_proc p where pronamespace = ${literal(names.quoted)}::regnamespace loop
    execute 'drop function ' || f.name || ' cascade';
  end loop;
end $do$;`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
