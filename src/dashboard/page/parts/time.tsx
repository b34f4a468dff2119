import { signal } from '@preact/signals';

/**
 * The locale for dates and numbers: the browser's variety of English, or else British English. Ignores invalid tags
 * such as `en-US@posix`, which some browsers use and which would make all formatting throw.
 */
export const locale = navigator.languages.find((tag) => /^en(-[A-Z]{2})?$/.test(tag)) ?? 'en-GB';

/** The browser's clock, updated often enough for wording such as "3 min ago". */
const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 5_000);
document.addEventListener('visibilitychange', () => {
  now.value = Date.now();
});

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactTime(at)}>
      {inWords(Date.parse(at), Math.max(now.value, Date.now() - 5_000))}
    </time>
  );
}

export function exactTime(at: string): string {
  return new Date(at).toLocaleString(locale, { dateStyle: 'full', timeStyle: 'long' });
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/**
 * Formats a time as `just now`, `3 min ago` or `in 2 h`, and a more distant time as a date. `just now` allows for small
 * differences between clocks.
 */
export function inWords(at: number, from: number): string {
  const distance = Math.abs(at - from);
  const words = (text: string) => (at > from ? `in ${text}` : `${text} ago`);
  if (distance < 10_000) return 'just now';
  if (distance < minute) return words(`${Math.round(distance / 1000)} s`);
  if (distance < hour) return words(`${Math.floor(distance / minute)} min`);
  if (distance < day) return words(`${Math.floor(distance / hour)} h`);
  if (distance < 7 * day) return words(distance < 2 * day ? '1 day' : `${Math.floor(distance / day)} days`);
  return new Date(at).toLocaleDateString(locale, { day: 'numeric', month: 'short', year: 'numeric' });
}

export function lengthInWords(ms: number): string {
  if (ms < minute) return `${Math.floor(ms / 1000)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < day) return `${Math.floor(ms / hour)} h`;
  return ms < 2 * day ? '1 day' : `${Math.floor(ms / day)} days`;
}
