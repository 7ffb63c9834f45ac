// An order and its job in one transaction, with kysely.
//
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… node examples/transactions/kysely.mjs
import { open } from 'crore';
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';

const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue('mails');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
await sql`CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)`.execute(db);

/** A transaction of kysely as `addIn` takes it. */
const client = (tx) => ({ query: (text, values) => tx.executeQuery(CompiledQuery.raw(text, values)) });

const order = (customer) =>
  db.transaction().execute(async (tx) => {
    await tx.insertInto('orders').values({ customer }).execute();
    const job = await mails.addIn(client(tx), { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    return job;
  });

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error) => console.log(error.message));
console.log(await mails.count());
await db.destroy();
await crore.close();
