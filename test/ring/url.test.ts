import { describe, expect, it } from 'vitest';
import { hasSecret, parseUrl } from '../../dist/ring/url.js';

const plain = {
  kind: 'socket',
  user: '',
  password: '',
  db: 0,
  host: 'localhost',
  port: 6379,
  path: '',
  tls: undefined,
};

describe('a ring URL', () => {
  it.each([
    ['redis://localhost:6379', plain],
    ['redis://', plain],
    ['redis://:7000', { ...plain, port: 7000 }],
    ['redis://example.org', { ...plain, host: 'example.org' }],
    ['redis://[::1]:7000/2', { ...plain, host: '::1', port: 7000, db: 2 }],
    ['redis://h/', { ...plain, host: 'h' }],
    ['redis://h?db=4', { ...plain, host: 'h', db: 4 }],
    ['redis://u:p@h:1/3', { ...plain, user: 'u', password: 'p', host: 'h', port: 1, db: 3 }],
    ['redis://:a%40b%2Fc:d@h', { ...plain, password: 'a@b/c:d', host: 'h' }],
    ['redis://:a@b/c@h', { ...plain, password: 'a@b/c', host: 'h' }],
    ['valkey://h', { ...plain, host: 'h' }],
    ['rediss://h', { ...plain, host: 'h', tls: {} }],
    ['rediss://h?ca=/a%20b&key=k', { ...plain, host: 'h', tls: { ca: '/a b', key: 'k' } }],
    ['unix:///run/r.sock', { ...plain, host: '', port: 0, path: '/run/r.sock' }],
    [
      'unix://u:p@/run/r.sock?db=1',
      { ...plain, host: '', port: 0, path: '/run/r.sock', user: 'u', password: 'p', db: 1 },
    ],
    ['/run/r.sock', { ...plain, host: '', port: 0, path: '/run/r.sock' }],
    ['sqlite:a/b.db', { kind: 'sqlite', file: 'a/b.db' }],
    [
      'redis+cluster://a:1,b',
      {
        kind: 'cluster',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
        ],
      },
    ],
    [
      'redis+sentinel://:p@a,b:2/main/5',
      {
        kind: 'sentinel',
        name: 'main',
        db: 5,
        password: 'p',
        hosts: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 2 },
        ],
      },
    ],
  ])('%s is parsed', (url, parts) => {
    expect(parseUrl(url)).toMatchObject(parts);
  });

  it.each([
    '',
    'localhost',
    'http://h',
    'redis:h',
    'redis://h:x',
    'redis://h:70000',
    'redis://h/x',
    'redis://u:%@h',
    'sqlite:',
    'unix://',
  ])('%j is refused with BAD_URL', (url) => {
    expect(() => parseUrl(url)).toThrow(expect.objectContaining({ code: 'BAD_URL' }));
  });

  it.each([
    ['redis://localhost:6379/2', false],
    ['redis://', false],
    ['sqlite:/var/ring.db', false],
    ['redis://u:p@h', true],
    ['redis://:p@h:6379/0', true],
    ['redis://h?password=p', true],
  ])('%j contains a secret: %j', (url, secret) => {
    expect(hasSecret(url)).toBe(secret);
  });
});
