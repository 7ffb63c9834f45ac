export type { Connection } from '../store/sqlite/file/external-connection.js';
export { openOutbox } from './open.js';
export type { OutboxAddOptions, OutboxOptions, Outgoing } from './outgoing.js';
export type { OutgoingItem, PostgresOutbox } from './postgres/outbox.js';
export { type Relay, type RelayOptions, relay } from './relay.js';
export type { Outbox } from './sqlite/outbox.js';
