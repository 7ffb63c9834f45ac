// How to test an application with crore/testing: the real engine, a clock to move, workers to kill. Run it with
//   node --test examples/bookshop/
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { openTesting } from 'crore/testing';
import { openBookshop } from './bookshop.mjs';

let kit;
let shop;
let sent;
let charged;
let bankIsOpen;
let mailIsUp;

beforeEach(async () => {
  kit = await openTesting();
  [sent, charged, bankIsOpen, mailIsUp] = [[], [], true, true];
  const bank = {
    async charge(order, cents) {
      if (!bankIsOpen) throw new Error('the bank is closed');
      if (!charged.includes(order)) charged.push(order);
      return `${order}: ${cents} cents`;
    },
  };
  const mail = {
    async send(to, text) {
      if (!mailIsUp) throw new Error('no answer from the mail server');
      sent.push(`${to}: ${text}`);
    },
  };
  shop = openBookshop({ crore: kit.crore, bank, mail });
});

afterEach(() => kit.close());

const order = (id, customer = 'ada', cents = 1_500) => shop.order({ id, customer, cents });

test('an order is charged, then confirmed', async () => {
  shop.work();
  const payment = await order('A1');
  await kit.drain();
  assert.equal(await payment.result(), 'A1: 1500 cents');
  assert.deepEqual(sent, ['ada: Thank you for order A1']);
});

test('a closed bank is asked again every minute, and the confirmation waits', async () => {
  shop.work();
  bankIsOpen = false;
  await order('A1');
  await kit.advance('2m');
  assert.deepEqual(sent, []);
  const { jobs } = await kit.inspect('payments');
  assert.equal(jobs.scheduled[0].attempt, 3);
  assert.match(jobs.scheduled[0].error, /the bank is closed/);
  bankIsOpen = true;
  await kit.advance('1m');
  assert.deepEqual(sent, ['ada: Thank you for order A1']);
});

test('an order that cannot be charged is dead, and its confirmation cancelled', async () => {
  shop.work();
  const payment = await order('A1', 'ada', 0);
  await kit.drain();
  assert.equal(await payment.state(), 'dead');
  assert.equal((await kit.inspect('mails')).counts.cancelled, 1);
});

test('who has not paid is reminded after three days, not before, and once', async () => {
  bankIsOpen = false;
  shop.work();
  await order('A1');
  await order('A2');
  await kit.advance('71h');
  assert.deepEqual(sent, []);
  await kit.advance('2h');
  assert.deepEqual(sent, ['ada: Your order A1 is waiting to be paid']);
});

test('a worker that dies after it was charged does not cost the customer twice', async () => {
  const { payments } = shop.work();
  kit.kill(payments, { at: 'settling' });
  const payment = await order('A1');
  await kit.drain();
  assert.deepEqual(charged, ['A1']);
  assert.equal(await payment.state(), 'active'); // in the hands of the dead, for ten seconds
  shop.work();
  await kit.advance('15s');
  assert.equal(await payment.state(), 'done');
  assert.deepEqual(charged, ['A1']);
  assert.equal((await payment.get()).crashes, 1);
});

test('what a dead worker held comes first when another one takes over', async () => {
  const { payments } = shop.work();
  kit.kill(payments, { at: 'claimed' });
  await order('A1', 'ada');
  await kit.drain();
  await order('A2', 'bob');
  await kit.advance('15s'); // nobody works on payments
  assert.deepEqual(charged, []);
  shop.work();
  await kit.drain();
  assert.deepEqual(charged, ['A1', 'A2']);
});

test('nothing is lost while the mail server is away', async () => {
  shop.work();
  mailIsUp = false;
  await order('A1', 'ada');
  await order('A2', 'bob');
  await kit.drain();
  assert.deepEqual(charged, ['A1', 'A2']);
  await kit.advance('5s');
  mailIsUp = true;
  await kit.advance('8h');
  assert.deepEqual(sent.toSorted(), ['ada: Thank you for order A1', 'bob: Thank you for order A2']);
});
