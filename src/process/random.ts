import { closeSync, openSync, readSync } from 'node:fs';

/** 20 bytes from the kernel, for whoever must start fast: the crypto module would add some milliseconds. */
export function randomToken(): Buffer {
  const token = Buffer.alloc(20);
  const source = openSync('/dev/urandom', 'r');
  try {
    readSync(source, token);
  } finally {
    closeSync(source);
  }
  return token;
}
