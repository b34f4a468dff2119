import { invalidArgument } from './answers.ts';

/**
 * Returns the page that `maxPageSize` and `pageToken` select, with at most `sizes.most` items. Refuses a token if the
 * other parameters differ from those of the first page.
 */
export function pageOf<T>(
  items: T[],
  query: URLSearchParams,
  sizes: { default: number; most: number },
): { page: T[]; nextPageToken: string } {
  const size = pageSize(query.get('maxPageSize'), sizes);
  const start = startOf(query);
  const end = start + size;
  const nextPageToken = end < items.length ? encode({ start: end, fixed: fixedPart(query) }) : '';
  return { page: items.slice(start, end), nextPageToken };
}

function pageSize(text: string | null, sizes: { default: number; most: number }): number {
  if (text === null || text === '0') return sizes.default;
  if (!/^\d{1,9}$/.test(text)) throw invalidArgument('maxPageSize is not a whole number.');
  return Math.min(Number(text), sizes.most);
}

function startOf(query: URLSearchParams): number {
  const token = query.get('pageToken');
  if (token === null || token === '' || token === 'again') return 0;
  const decoded = decode(token);
  if (decoded === undefined) throw invalidArgument('The page token is invalid.');
  if (decoded.fixed !== fixedPart(query)) throw invalidArgument('The page token does not belong to these parameters.');
  return decoded.start;
}

function fixedPart(query: URLSearchParams): string {
  return JSON.stringify([...query].filter(([name]) => name !== 'pageToken').sort());
}

function encode(token: { start: number; fixed: string }): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

function decode(token: string): { start: number; fixed: string } | undefined {
  try {
    return JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch {
    return undefined;
  }
}
