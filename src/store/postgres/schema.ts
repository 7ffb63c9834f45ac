import { readdirSync, readFileSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import type { PostgresClient, Row } from './connection/client.js';

/** The format of the tables and functions; a newer one is refused. */
export const FORMAT = 1;

const SQL = new URL('./sql/', import.meta.url);

/** Names that depend on the schema: those in SQL, and the channel of notifications. */
export class SchemaNames {
  readonly quoted: string;
  readonly channel: string;
  /** The class of our advisory locks, so that two schemas do not share them. */
  readonly lockClass: number;

  constructor(readonly schema: string) {
    this.quoted = `"${schema.replaceAll('"', '""')}"`;
    let hash = 0;
    for (const byte of Buffer.from(`crore ${schema}`)) hash = (Math.imul(hash, 31) + byte) | 0;
    this.lockClass = hash;
    this.channel = `crore_${(hash >>> 0).toString(36)}_${Buffer.from(schema).toString('hex').slice(0, 40)}`;
  }

  /** `crore.` stands for the schema in every file. */
  fill(text: string): string {
    return text
      .replaceAll(/'crore\.(\w+)'/g, (_all, name: string) => `'${this.quoted.replaceAll("'", "''")}.${name}'`)
      .replaceAll(/\bcrore\.(?=\w)/g, () => `${this.quoted}.`)
      .replaceAll(":'channel'", `'${this.channel}'`)
      .replaceAll(':lock_class', String(this.lockClass));
  }
}

/** The functions, all of which are created again for every format. */
function functions(): string[] {
  return readdirSync(SQL, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sql') && name !== 'tables.sql')
    .sort((a, b) => Number(b.startsWith('lib')) - Number(a.startsWith('lib')) || (a < b ? -1 : 1))
    .map((name) => readFileSync(new URL(name.replaceAll('\\', '/'), SQL), 'utf8'));
}

const DROP_FUNCTIONS = (names: SchemaNames) => `do $$ declare f record; begin
  for f in select p.oid::regprocedure as name from pg_proc p where pronamespace = '${names.quoted.replaceAll("'", "''")}'::regnamespace loop
    execute 'drop function ' || f.name || ' cascade';
  end loop; end $$;`;

/** Creates or migrates the schema under a lock. The statements of one script are one transaction. */
export async function migrate(client: PostgresClient, names: SchemaNames): Promise<void> {
  const { version, made } = await inspect(client, names);
  if (version === FORMAT) return;
  const tables = readFileSync(new URL('tables.sql', SQL), 'utf8');
  const parts = [
    `select set_config('check_function_bodies', 'off', true), set_config('client_min_messages', 'warning', true);`,
    `select pg_advisory_xact_lock(${names.lockClass}, 0);`,
    made ? '' : `create schema if not exists ${names.quoted};`,
    DROP_FUNCTIONS(names),
    names.fill([tables, ...functions()].join('\n')),
    `insert into ${names.quoted}.crore_format values (${FORMAT});`,
  ];
  try {
    await client.script(parts.join('\n'));
  } catch (error) {
    // Another process has done it while we waited for the lock.
    if ((await inspect(client, names)).version !== FORMAT) throw error;
  }
}

const INSPECT = `select to_regnamespace($1) is not null as made, to_regclass($1 || '.crore_format') is not null as ours,
  exists (select 1 from pg_class c where c.relnamespace = to_regnamespace($1)) as used,
  coalesce(has_schema_privilege(to_regnamespace($1), 'usage'), false) as usable,
  case when to_regnamespace($1) is null then has_database_privilege(current_database(), 'create')
    else has_schema_privilege(to_regnamespace($1), 'create') end as creatable, current_user as role, current_database() as database`;

/** The format of the schema, 0 if it has no tables yet, and whether it exists at all. */
async function inspect(client: PostgresClient, names: SchemaNames): Promise<{ version: number; made: boolean }> {
  const [row] = (await client.read(INSPECT, [names.quoted])) as [Row];
  const shown = `schema ${names.quoted} of ${client.shown}`;
  if (row.made && !row.usable) throw denied(row, shown, 'USAGE');
  if (!row.ours && row.used) throw new CroreError('STORE_CORRUPT', `${shown} is in use, but is not a Crore store`);
  if (!row.ours) {
    if (!row.creatable) throw denied(row, row.made ? shown : `database '${row.database}' of ${client.shown}`, 'CREATE');
    return { version: 0, made: row.made === true };
  }
  const [found] = await client.read('select max(version) as version from crore.crore_format', []);
  const version = (found?.version as number | null) ?? 0;
  if (version > FORMAT) {
    const hint = `this version of Crore supports ${FORMAT}: upgrade Crore`;
    throw new CroreError('STORE_NEWER', `${shown} has format ${version}, ${hint}`);
  }
  return { version, made: true };
}

function denied(row: Row, where: string, privilege: string): CroreError {
  return new CroreError('STORE_READONLY', `role '${row.role}' has no ${privilege} privilege on ${where}`);
}
