// An order and its job in one transaction, with drizzle.
//
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… node examples/transactions/drizzle.mjs
import { open } from 'crore';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial, text } from 'drizzle-orm/pg-core';

const orders = pgTable('orders', { id: serial('id').primaryKey(), customer: text('customer') });
const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue('mails');
const db = drizzle(process.env.DATABASE_URL);
await db.execute('CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)');

const order = (customer) =>
  db.transaction(async (tx) => {
    await tx.insert(orders).values({ customer });
    const job = await mails.addIn(tx, { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    return job;
  });

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error) => console.log(error.message));
console.log(await mails.count());
await db.$client.end();
await crore.close();
