// An order and its job in one transaction, with knex.
//
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… node examples/transactions/knex.mjs
import { open } from 'crore';
import knex from 'knex';

const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue('mails');
const db = knex({ client: 'pg', connection: process.env.DATABASE_URL });
await db.raw('CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)');

const order = (customer) =>
  db.transaction(async (tx) => {
    await tx('orders').insert({ customer });
    const job = await mails.addIn(tx, { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    return job;
  });

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error) => console.log(error.message));
console.log(await mails.count());
await db.destroy();
await crore.close();
