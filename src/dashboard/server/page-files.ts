import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { acceptsEncoding } from '../../base/net.ts';
import { zlib } from '../../base/node-modules.ts';

export interface PageFile {
  type: string;
  /** True if the file's name changes with its content, so that browsers can cache it forever. */
  isImmutable: boolean;
  bytes: Buffer;
  packed: Partial<Record<'br' | 'gzip', Buffer>>;
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};

const packable = new Set(['.html', '.js', '.css', '.svg', '.webmanifest']);

/**
 * Reads and compresses the page's built files, and returns them keyed by path. Returns none if the folder is missing.
 * The page is served below `base`.
 */
export async function readPageFiles(folder: string, base = ''): Promise<ReadonlyMap<string, PageFile>> {
  const names = await readdir(folder).catch((): string[] => []);
  const known = names.filter((name) => types[extname(name)] !== undefined);
  const files = await Promise.all(
    known.map(async (name) => [`/${name}`, await readPageFile(folder, name, base)] as const),
  );
  const byPath = new Map(files);
  const page = byPath.get('/index.html');
  if (page !== undefined) byPath.set('/', page).set('/login', page);
  return byPath;
}

async function readPageFile(folder: string, name: string, base: string): Promise<PageFile> {
  const extension = extname(name);
  const read = await readFile(join(folder, name));
  const bytes = extension === '.html' ? Buffer.from(String(read).replaceAll(/(?<=(href|src)=")(?=\/)/g, base)) : read;
  const isPacked = packable.has(extension);
  return {
    type: types[extension] ?? 'application/octet-stream',
    isImmutable: name !== 'index.html',
    bytes,
    packed: isPacked ? { br: await brotli(bytes), gzip: await gzip(bytes) } : {},
  };
}

/** Brotli's quality. A higher one would cost a second of CPU time and save a few hundred bytes. */
const quality = 9;

async function brotli(bytes: Buffer): Promise<Buffer> {
  const { brotliCompress, constants } = zlib();
  return promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } });
}

export async function gzip(bytes: Buffer): Promise<Buffer> {
  return promisify(zlib().gzip)(bytes);
}

/** Returns the most compact encoding that rankd supports and an Accept-Encoding header accepts, or `undefined`. */
export function packingFor(accepted: string | string[] | undefined): 'br' | 'gzip' | undefined {
  return (['br', 'gzip'] as const).find((encoding) => acceptsEncoding(accepted, encoding));
}
