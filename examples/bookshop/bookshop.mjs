// An imagined bookshop. Orders are charged, books are announced by mail, and who has not paid is reminded: each of it a
// job, so that none is forgotten when a process dies or the mail server sleeps.
import { Fatal } from 'crore';

/**
 * @param {object} parts
 * @param {import('crore').Crore} parts.crore
 * @param {{ charge(order: string, cents: number): Promise<string> }} parts.bank refuses to charge an order twice
 * @param {{ send(to: string, text: string): Promise<void> }} parts.mail
 */
export function openBookshop({ crore, bank, mail }) {
  const payments = crore.queue('payments');
  const mails = crore.queue('mails');
  const reminders = crore.queue('reminders');
  const paid = new Set();

  return {
    paid,

    /** Takes an order: it is charged soon, confirmed afterwards, and the customer reminded in three days if it is not. */
    async order({ id, customer, cents }) {
      const payment = await payments.add({ id, customer, cents }, { id, attempts: 4, backoff: '1m' });
      await mails.add({ to: customer, text: `Thank you for order ${id}` }, { needs: [{ queue: 'payments', id }] });
      await reminders.add({ id, customer }, { delay: '3d', unique: customer });
      return payment;
    },

    /** Starts a worker for each kind of work; a process of its own in real life. */
    work() {
      return {
        payments: payments.work(async ({ payload: { id, cents } }) => {
          if (cents <= 0) throw new Fatal(`order ${id} costs nothing`);
          // The bank knows the order by its id: asked again after a crash, it does not charge again.
          const receipt = await bank.charge(id, cents);
          paid.add(id);
          return receipt;
        }),
        mails: mails.work(async ({ payload: { to, text } }) => mail.send(to, text)),
        reminders: reminders.work(async ({ payload: { id, customer } }) => {
          if (!paid.has(id)) await mail.send(customer, `Your order ${id} is waiting to be paid`);
        }),
      };
    },
  };
}
