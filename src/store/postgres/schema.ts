import { CroreError } from '../../errors.js';
import type { PostgresClient, Row } from './connection/client.js';
import { grants, type Layout, migrationScript, STORE_LAYOUT } from './migration.js';

/** The name of a function in the database. */
export function functionName(name: string, layout: Layout = STORE_LAYOUT): string {
  return layout.forApplications.has(name) ? name : `${name}_f${layout.steps.length}`;
}

/** Names that depend on the schema: those in SQL, and the channel of notifications. */
export class SchemaNames {
  readonly quoted: string;
  readonly channel: string;
  /** The class of our advisory locks, so that two schemas do not share them. */
  readonly lockClass: number;

  constructor(
    readonly schema: string,
    readonly layout: Layout = STORE_LAYOUT,
  ) {
    this.quoted = `"${schema.replaceAll('"', '""')}"`;
    let hash = 0;
    for (const byte of Buffer.from(`crore ${schema}`)) hash = (Math.imul(hash, 31) + byte) | 0;
    this.lockClass = hash;
    this.channel = `crore_${(hash >>> 0).toString(36)}_${Buffer.from(schema).toString('hex').slice(0, 40)}`;
  }

  /** The current format of such a schema. */
  get format(): number {
    return this.layout.steps.length;
  }

  /** `crore.` stands for the schema in every file; a name directly before a parenthesis is that of a function. */
  fill(text: string): string {
    return text
      .split(/^(?=create (?:function|procedure) crore\.)/m)
      .map((part) => this.#withOwnName(part))
      .join('')
      .replaceAll(/\bcrore\.(\w+)\(/g, (_all, name: string) => `crore.${functionName(name, this.layout)}(`)
      .replaceAll(/'crore\.(\w+)'/g, (_all, name: string) => `'${this.quoted.replaceAll("'", "''")}.${name}'`)
      .replaceAll(/\bcrore\.(?=\w)/g, () => `${this.quoted}.`)
      .replaceAll(":'channel'", `'${this.channel}'`)
      .replaceAll(':lock_class', String(this.lockClass));
  }

  /** Inside a function, its name qualifies its variables. */
  #withOwnName(text: string): string {
    const [, name] = /^create (?:function|procedure) crore\.(\w+)/.exec(text) ?? [];
    return name === undefined
      ? text
      : text.replaceAll(new RegExp(`(?<![.\\w])${name}\\.`, 'g'), `${functionName(name, this.layout)}.`);
  }
}

/** Creates or migrates the schema under a lock; returns the format that it had. `role` gets the privileges to use it. */
export async function migrate(client: PostgresClient, names: SchemaNames, role?: string): Promise<number> {
  const version = await inspect(client, names);
  if (version < names.format) await change(client, names, version);
  if (role !== undefined) await client.script(grants(names, role));
  return version;
}

async function change(client: PostgresClient, names: SchemaNames, version: number): Promise<void> {
  try {
    await client.script(migrationScript(names, version));
  } catch (error) {
    // Another process has done it while we waited for the lock.
    if ((await inspect(client, names)) !== names.format) throw error;
  }
}

/** For a function or table that is missing: the process may be older than the schema. */
export async function explainMissing(client: PostgresClient, names: SchemaNames): Promise<CroreError | undefined> {
  const found = await inspect(client, names).catch((error: CroreError) => error);
  return found instanceof CroreError && found.code === 'STORE_NEWER' ? found : undefined;
}

const INSPECT = `select to_regnamespace($1) is not null as made, to_regclass($1 || '.' || $2) is not null as ours,
  exists (select 1 from pg_class c where c.relnamespace = to_regnamespace($1)) as used,
  coalesce(has_schema_privilege(to_regnamespace($1), 'usage'), false) as usable,
  case when to_regnamespace($1) is null then has_database_privilege(current_database(), 'create')
    else has_schema_privilege(to_regnamespace($1), 'create') end as creatable, current_user as role, current_database() as database`;

/** The format of the schema, 0 if it has no tables yet. */
async function inspect(client: PostgresClient, names: SchemaNames): Promise<number> {
  const [row] = (await client.read(INSPECT, [names.quoted, names.layout.formatTable])) as [Row];
  const shown = `schema ${names.quoted} of ${client.shown}`;
  if (row.made && !row.usable) throw denied(row, shown, 'USAGE');
  if (!row.ours && row.used)
    throw new CroreError('STORE_CORRUPT', `${shown} is in use, but is not a Crore ${names.layout.what}`);
  const place = row.made ? shown : `database '${row.database}' of ${client.shown}`;
  const version = row.ours ? await readFormat(client, names) : 0;
  if (version > names.format) {
    const hint = `this version of Crore supports ${names.format}: upgrade Crore`;
    throw new CroreError('STORE_NEWER', `${shown} has format ${version}, ${hint}`);
  }
  if (version < names.format && !row.creatable)
    throw denied(row, place, 'CREATE', names.layout === STORE_LAYOUT ? MIGRATE : '');
  return version;
}

const MIGRATE = `; a role that has it can run 'crore schema migrate'`;

async function readFormat(client: PostgresClient, { layout }: SchemaNames): Promise<number> {
  const [found] = await client.read(`select max(version) as version from crore.${layout.formatTable}`, []);
  return (found?.version as number | null) ?? 0;
}

function denied(row: Row, where: string, privilege: string, hint = ''): CroreError {
  return new CroreError('STORE_READONLY', `role '${row.role}' has no ${privilege} privilege on ${where}${hint}`);
}
