// The handler of Crore, and the sandboxed processor of BullMQ: it does nothing.
export default async () => {};
