// An order and its job in one transaction, with `pg`.
//
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… node examples/transactions/pg.mjs
import { open } from 'crore';
import pg from 'pg';

const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue('mails');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
await pool.query('CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)');

async function order(customer) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('INSERT INTO orders (customer) VALUES ($1)', [customer]);
    const job = await mails.addIn(client, { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    await client.query('COMMIT');
    return job;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error) => console.log(error.message));
console.log(await mails.count());
await pool.end();
await crore.close();
