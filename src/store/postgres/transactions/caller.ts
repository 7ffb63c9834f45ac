import { CroreError, type ErrorCode } from '../../../errors.js';
import type { PostgresClient } from '../connection/client.js';
import { CONCERNS_OTHERS, firstLine, translate } from '../connection/failure.js';
import { onlyValue, type Run, runnerOf, serverError } from './connections.js';

/** A conflict with the call of another, which is gone after a rollback to the savepoint. */
const CONFLICT = '40001';
/** A lock that the transaction holds since before the savepoint is part of a deadlock: only a rollback of all of it helps. */
const DEADLOCK = '40P01';
const MOST_CONFLICTS = 5;

/** What is wrong with the transaction of the caller, by SQLSTATE. */
const REFUSALS: Record<string, [code: ErrorCode, why: string]> = {
  '25P01': ['BAD_OPTION', 'the client is not in a transaction: begin one first, and do not give a pool'],
  '25P02': ['BAD_OPTION', 'the transaction has already failed, and can only be rolled back'],
  CR005: ['STORE_UNSUPPORTED', ''],
  CR006: ['BAD_OPTION', ''],
  CR007: ['STORE_NEWER', ''],
  '3F000': ['BAD_OPTION', 'the database of the connection has no such schema'],
  '42883': ['BAD_OPTION', 'the schema in the database of the connection does not have this format'],
  '42P01': ['BAD_OPTION', 'the schema in the database of the connection does not have this format'],
};

/** Writes the argument of a call as JSON. `store`: what the schema has to be identified by; `cross`: jobs of other queues are concerned. */
export type Argument = (store: unknown, cross: boolean) => string;

/** Calls functions of a schema through clients of the application, inside its transactions. */
export class TransactionCaller {
  readonly #turns = new WeakMap<object, Promise<unknown>>();

  /** `identity` is that of the schema; `what` is in it: for messages. */
  constructor(
    private readonly client: PostgresClient,
    private readonly identity: unknown,
    private readonly what: string,
  ) {}

  /** The answer of a function that takes and returns JSON. What it has changed lasts if and only if the transaction commits. */
  async call(connection: unknown, name: string, argument: Argument): Promise<unknown> {
    const run = runnerOf(connection);
    return this.#inTurn(connection as object, async () => {
      try {
        return JSON.parse(
          await persist(run, `${this.client.schema}.${name}`, (cross) => argument(this.identity, cross)),
        );
      } catch (error) {
        throw this.#refusal(error);
      }
    });
  }

  /** Calls on one client one after the other: each has its savepoint. */
  #inTurn<V>(connection: object, work: () => Promise<V>): Promise<V> {
    const before = this.#turns.get(connection);
    const mine = before ? before.then(work, work) : work();
    this.#turns.set(
      connection,
      mine.catch(() => {}),
    );
    return mine;
  }

  #refusal(error: unknown): CroreError {
    const { code, message } = serverError(error);
    const { shown, schema } = this.client;
    const refusal = REFUSALS[code];
    if (refusal) {
      const [ours, why] = refusal;
      const where = `(the ${this.what} is in schema ${schema} of ${shown})`;
      return new CroreError(ours, `addIn: ${why || firstLine(message)} ${where}`, { cause: error });
    }
    if (code === CONFLICT || code === DEADLOCK)
      return new CroreError('STORE_BUSY', `addIn: ${firstLine(message)}: roll back and repeat the transaction`, {
        cause: error,
      });
    if (code === '') return new CroreError('STORE_UNREACHABLE', `addIn: ${firstLine(message)}`, { cause: error });
    return translate(Object.assign(new Error(message, { cause: error }), { code }), shown);
  }
}

/** Calls the function in a savepoint, so that a refusal leaves the transaction as it was. Outside a transaction, there are no savepoints. */
async function persist(run: Run, name: string, argument: (cross: boolean) => string): Promise<string> {
  let cross = false;
  for (let conflicts = 0; ; ) {
    await run('savepoint crore_add');
    try {
      const answer = onlyValue(await run(`select ${name}($1::text::jsonb)::text as answer`, argument(cross)));
      await run('release savepoint crore_add');
      return answer as string;
    } catch (error) {
      await undo(run, error);
      const { code } = serverError(error);
      if (code === CONCERNS_OTHERS && !cross) cross = true;
      else if (code !== CONFLICT || ++conflicts > MOST_CONFLICTS) throw error;
    }
  }
}

async function undo(run: Run, error: unknown): Promise<void> {
  try {
    await run('rollback to savepoint crore_add');
    await run('release savepoint crore_add');
  } catch {
    // The connection is lost, and the transaction with it: the first error says why.
    throw error;
  }
}
