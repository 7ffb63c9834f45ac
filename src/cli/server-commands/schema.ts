import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { migrateSchema, printSchema } from '../../store/schema.js';
import { action, answer, hideFromProcessList, type StoreOptions, storeUrl, subcommand } from '../action.js';
import { whole } from '../option-values.js';
import { Output } from '../output.js';
import { program } from '../program.js';

const TIMEOUT = 30_000;

interface SchemaOptions extends StoreOptions {
  from?: string;
  role?: string;
}

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore schema',
    summary: 'Print or run the SQL that creates or migrates the tables of a store on PostgreSQL.',
    details: 'A process whose role may create tables does it by itself when it opens the store.',
    examples: [
      ['crore schema print --store postgres:///app | psql app', 'by an administrator, with psql'],
      ['crore schema migrate --store postgres://admin@db/app --role jobs', 'and let the role jobs use it'],
    ],
  });
  const role = ['--role <name>', 'Grant this role what it needs to use the store.'] as const;
  const printing = subcommand(command, 'print', {
    summary: 'Print the SQL that creates the schema. Nothing is connected: of the URL, only schema=NAME counts.',
    examples: [
      ["crore schema print --store 'postgres:///?schema=jobs' --role app", 'another schema, and a role to use it'],
      ['crore schema print --store postgres:/// --from 1', 'from the format of an older version of Crore'],
    ],
  })
    .option('--from <format>', 'The format of an existing store, to be migrated (default: 0, none yet).')
    .option(...role);
  action(printing, print);
  const migrating = subcommand(command, 'migrate', {
    summary:
      'Create the schema, or bring it to the current format. Processes of older versions are refused from then on.',
    examples: [['crore schema migrate --store postgres://admin@db/app', 'as a role that may create tables']],
  }).option(...role);
  action(migrating, migrate);
  return answer(command, argv);
}

async function print(options: SchemaOptions): Promise<number> {
  const from = whole(options.from, '--from', 0) ?? 0;
  const sql = await printSchema(storeUrl(options), { from, role: roleName(options) });
  new Output(options.json === true).say({ sql }, sql);
  return 0;
}

async function migrate(options: SchemaOptions): Promise<number> {
  const url = hideFromProcessList(storeUrl(options));
  const { from, to } = await migrateSchema(url, { timeout: TIMEOUT, role: roleName(options) });
  const outcome = from === to ? 'unchanged' : from === 0 ? 'created' : 'migrated';
  const text = `${redactUrl(url)}  ${outcome}  ${from === 0 || from === to ? `format ${to}` : `format ${from} to ${to}`}`;
  new Output(options.json === true).say({ outcome, from, to }, text);
  return 0;
}

/** The server would cut off a longer name, and mean another role. */
function roleName({ role }: SchemaOptions): string | undefined {
  if (role === undefined) return undefined;
  if (role === '' || role.includes('\0') || Buffer.byteLength(role) > 63)
    throw new CroreError('BAD_OPTION', '--role must have 1 to 63 bytes');
  return role;
}
