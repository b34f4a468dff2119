import { type ReadonlySignal, signal } from '@preact/signals';

/** What the style sheet asks of the window, for what it can't say itself. */
export const isRoomy = watched('(width > 48rem)');
export const isWide = watched('(width > 60rem)');

function watched(query: string): ReadonlySignal<boolean> {
  const media = matchMedia(query);
  const answer = signal(media.matches);
  media.addEventListener('change', () => {
    answer.value = media.matches;
  });
  return answer;
}
