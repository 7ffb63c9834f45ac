import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { respond } from './answers.js';

interface PageFile {
  type: string;
  bytes: Buffer;
  zipped: Buffer;
  tag: string;
  /** Its name changes with its content, so it can be kept for ever. */
  permanent: boolean;
}

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
};

/** The built page: a few files, read when the first of them is asked for and kept compressed. */
export class PageFiles {
  #files: Map<string, PageFile> | undefined;
  #page: string | undefined;

  constructor(
    /** The path under which the dashboard is mounted, with a slash at both ends. */
    private readonly base: string,
    private readonly folder = new URL('../page/', import.meta.url),
  ) {}

  /** The page itself, the same for all its paths. */
  page(): Response {
    this.#page ??= readFileSync(new URL('index.html', this.folder), 'utf8').replace('%BASE%', escaped(this.base));
    return respond(200, this.#page, { 'content-type': TYPES.html! });
  }

  /** A file of the page; undefined if there is none of this name. */
  file(name: string, request: Request): Response | undefined {
    this.#files ??= this.#read();
    const file = this.#files.get(name);
    if (!file) return undefined;
    const headers: Record<string, string> = {
      'content-type': file.type,
      'cache-control': file.permanent ? 'public, max-age=31536000, immutable' : 'no-cache',
      etag: file.tag,
      vary: 'accept-encoding',
    };
    if (request.headers.get('if-none-match') === file.tag) return respond(304, null, headers);
    if (!/\bgzip\b/.test(request.headers.get('accept-encoding') ?? ''))
      return respond(200, new Uint8Array(file.bytes), headers);
    return respond(200, new Uint8Array(file.zipped), { ...headers, 'content-encoding': 'gzip' });
  }

  #read(): Map<string, PageFile> {
    const names = readdirSync(this.folder).filter((name) => /\.(js|css)$/.test(name));
    return new Map(names.map((name) => [name, this.#readFile(name)]));
  }

  #readFile(name: string): PageFile {
    const bytes = readFileSync(new URL(name, this.folder));
    const tag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 20)}"`;
    const type = TYPES[name.split('.').at(-1)!]!;
    return { type, bytes, zipped: gzipSync(bytes, { level: 9 }), tag, permanent: name.startsWith('part-') };
  }
}

function escaped(text: string): string {
  return text.replace(/[&"<>]/g, (one) => `&#${one.charCodeAt(0)};`);
}
