// An order and its job in one transaction, with prisma 7. In this folder:
//
//   npm install crore @prisma/client @prisma/adapter-pg prisma tsx && npx prisma generate
//   CRORE_STORE=postgres://… DATABASE_URL=postgres://… npx tsx order.ts
import { PrismaPg } from '@prisma/adapter-pg';
import { open } from 'crore';
import { PrismaClient } from './generated/client';

const crore = await open(); // CRORE_STORE: the same database
const mails = crore.queue<{ to: string }>('mails');
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });
await prisma.$executeRawUnsafe('CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text)');

const order = (customer: string) =>
  prisma.$transaction(async (tx) => {
    await tx.order.create({ data: { customer } });
    const job = await mails.addIn(tx, { to: customer });
    if (customer === 'nobody') throw new Error('no such customer');
    return job;
  });

mails.work(async ({ payload }) => `sent to ${payload.to}`);
console.log(await (await order('ada')).finished());
await order('nobody').catch((error: Error) => console.log(error.message));
console.log(await mails.count());
await prisma.$disconnect();
await crore.close();
