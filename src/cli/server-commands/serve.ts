import type { Command } from 'commander';
import { isLoopback, shown } from '../../grpc/addresses.js';
import { Server } from '../../grpc/server.js';
import { redactUrl } from '../../redact.js';
import { version } from '../../version.js';
import { adviceOnSecret } from '../action.js';
import { parse, program } from '../program.js';
import { type ServerLog, serverLog } from './log.js';
import { setupOf } from './server-setup.js';
import { type ResolvedSettings, resolveSettings, SETTINGS } from './settings.js';

/** Options of every command that reads the server's settings. */
export function settingOptions(command: Command): Command {
  command.option('--config <file>', 'TOML file (default: $CRORE_CONFIG, else crore.toml if it exists)');
  for (const setting of SETTINGS) {
    const name = `--${setting.key.replaceAll('_', '-')}`;
    const shownDefault =
      setting.fallback === undefined || setting.fallback === false ? '' : ` (default ${setting.fallback})`;
    command.option('takes' in setting ? `${name} <${setting.takes}>` : name, `${setting.help}${shownDefault}`);
  }
  return command;
}

export async function run(argv: string[]): Promise<number> {
  let settled: ResolvedSettings | undefined;
  const advice: string[] = [];
  const command = settingOptions(
    program({
      name: 'crore serve',
      summary: 'Start a job server: a dashboard, the Lakh protocol, crore.v1 and HTTP/JSON.',
      examples: [
        ['crore serve', 'sqlite:crore.db; the dashboard is at http://localhost:5380/'],
        ['crore serve --store redis://localhost', 'several servers may share one Redis'],
        ['crore serve --addr 0.0.0.0:50051 --tls-cert c.pem --tls-key k.pem --token-file t', 'for other machines'],
      ],
    }),
  ).action((options: Record<string, unknown>) => {
    advice.push(
      ...(['--store', '--token', '--read-token'] as const).flatMap(
        (flag) => adviceOnSecret(flag, options[optionName(flag)]) ?? [],
      ),
    );
    settled = resolveSettings(options, process.env, options.config as string | undefined);
  });
  await parse(command, argv);
  return settled ? serve(settled, advice) : 0;
}

/** `--read-token` is `readToken` in the options. */
function optionName(flag: string): string {
  return flag.slice(2).replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
}

async function serve({ values }: ResolvedSettings, advice: readonly string[]): Promise<number> {
  const log = serverLog(values.log_level as string, values.log_format as 'auto' | 'text' | 'json');
  logWarnings(log);
  const server = await Server.start(await setupOf(values, version(), log));
  for (const one of advice) log.warn({}, one);
  const stopped = new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
  say(server, values);
  const signal = await stopped;
  log.info({ signal }, 'shutting down: waiting for jobs in progress');
  // A user who asks twice does not want to wait.
  process.once('SIGINT', () => process.exit(130));
  await server.close();
  log.info({}, 'closed');
  return 0;
}

/** Logs warnings of the runtime and uncaught errors as JSON lines too, like everything else. */
function logWarnings(log: ServerLog): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ name }, message));
  process.on('uncaughtException', (error) => log.error({ err: error }, 'unhandled error: please report it'));
}

/** Prints, for people, where the server listens and how to connect to it. */
function say(server: Server, { store, dashboard, tls_cert, ...values }: ResolvedSettings['values']): void {
  const grpc = server.addresses.map(shown);
  const pages = server.httpAddresses.map(shown);
  const secure = tls_cert !== undefined;
  const hasToken = values.token !== undefined || values.token_file !== undefined;
  const web = (address: string) => `${secure ? 'https' : 'http'}://${address}`;
  const hasDashboard = dashboard !== 'off' && pages.length > 0;
  const lines = [
    ...(hasDashboard ? [`Dashboard: ${web(pages[0]!)}/`] : []),
    `crore ${version()} serves ${redactUrl(String(store))}`,
    `  gRPC       ${grpc.join(' and ')}  (lakh.Lakh, crore.v1.Crore)`,
  ];
  if (pages.length > 0) lines.push(`  HTTP/JSON  ${pages.map(web).join(' and ')}`);
  lines.push(
    '',
    'How to connect:',
    `  TypeScript   const crore = await open('${secure ? 'grpcs' : 'grpc'}://${hasToken ? ':TOKEN@' : ''}${grpc[0]}')`,
  );
  if (pages.length > 0) {
    const json = `${hasToken ? "-H 'authorization: Bearer TOKEN' " : ''}-H 'content-type: application/json'`;
    const job = '{"queue":"mails","jobs":[{"payload":{"to":"ada"}}]}';
    lines.push(`  curl         curl ${json} -d '${job}' ${web(pages[0]!)}/crore.v1.Crore/Add`);
    lines.push(`               curl ${json} -d '{}' ${web(pages[0]!)}/crore.v1.Crore/Stats`);
  }
  lines.push(
    `  grpcurl      grpcurl ${secure ? '' : '-plaintext '}${hasToken ? "-H 'authorization: Bearer TOKEN' " : ''}${grpc[0]} list`,
    '',
    'Press Ctrl-C to stop. See docs/server.md.',
  );
  if (!server.addresses.every(isLoopback)) lines.push('Other machines can reach this server.');
  process.stdout.write(`${lines.join('\n')}\n`);
}
