import { isoTime } from '../../base/time.ts';

/** A session of the page. Times are epoch milliseconds. */
interface Session {
  by: string;
  loggedInAt: number;
  expiresAt: number;
  mayChangeUntil: number;
}

export function sessionDocument({ by, loggedInAt, expiresAt, mayChangeUntil }: Session, typedAs: string) {
  return {
    operator: by.replace(/^web:/, ''),
    loggedInAt: isoTime(loggedInAt),
    expiresAt: isoTime(expiresAt),
    mayChangeUntil: isoTime(mayChangeUntil),
    typedAs,
  };
}

/** A link that logs in once. */
export function linkDocument({ url, expiresAt }: { url: string; expiresAt: number }) {
  return { url, expiresAt: isoTime(expiresAt) };
}
