/** Turns `send(items)` into a call for one item: whatever is asked for in the same tick goes out together. */
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
