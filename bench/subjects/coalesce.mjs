/** Turns `send(items)` into a function for one item: calls of the same tick are sent together. */
export function coalesce(send) {
  let waiting;
  return (item) => {
    if (!waiting) {
      const batch = [];
      waiting = { batch, sent: Promise.resolve().then(() => flush(batch)) };
    }
    waiting.batch.push(item);
    return waiting.sent;
  };

  function flush(batch) {
    waiting = undefined;
    return send(batch);
  }
}
