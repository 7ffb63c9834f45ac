import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, RedisServer } from './redis.js';

/** A self-signed certificate for localhost, with its key. */
export function makeCertificate(dir: string): { key: string; cert: string } {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...subject], {
    stdio: 'ignore',
  });
  return { key, cert };
}

/** A Redis that requires a client certificate; `files` is the query of a URL that provides it. */
export async function startTlsRedis(dir: string): Promise<{ redis: RedisServer; port: number; files: string }> {
  const { key, cert } = makeCertificate(dir);
  const port = await freePort();
  const options = { 'tls-port': String(port), 'tls-cert-file': cert, 'tls-key-file': key, 'tls-ca-cert-file': cert };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const redis = await RedisServer.start([...args, '--tls-auth-clients', 'yes']);
  return { redis, port, files: `ca=${cert}&cert=${cert}&key=${key}` };
}

/** A sentinel that watches a primary called `main`. */
export async function startSentinel(dir: string, primary: number): Promise<{ port: number; stop(): Promise<void> }> {
  const port = await freePort();
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor main 127.0.0.1 ${primary} 1`,
    'sentinel down-after-milliseconds main 500',
    'sentinel failover-timeout main 3000',
  ];
  const file = join(dir, 'sentinel.conf');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child: ChildProcess = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  return {
    port,
    stop: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
