import { closeSync, openSync, readSync } from 'node:fs';

/** 20 random bytes from the kernel, for a fast start: loading the crypto module would add some milliseconds. */
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
