export type { Connection } from '../store/sqlite/file/external-connection.js';
export { type Outbox, type OutboxAddOptions, type OutboxOptions, type Outgoing, openOutbox } from './outbox.js';
export { type Relay, type RelayOptions, relay } from './relay.js';
