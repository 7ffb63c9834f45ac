// An order and its job in one transaction, with `postgres`.
//
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… node examples/transactions/postgres.mjs
import { open } from 'crore';
import postgres from 'postgres';

const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue('mails');
const sql = postgres(process.env.DATABASE_URL, { onnotice: () => {} });
await sql`CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)`;

const order = (customer) =>
  sql.begin(async (tx) => {
    await tx`INSERT INTO orders (customer) VALUES (${customer})`;
    const job = await mails.addIn(tx, { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    return job;
  });

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error) => console.log(error.message));
console.log(await mails.count());
await sql.end();
await crore.close();
