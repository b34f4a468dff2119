import { type ReadonlySignal, signal } from '@preact/signals';

/** The style sheet's breakpoints, for decisions that CSS can't make. */
export const isRoomy = mediaSignal('(width > 48rem)');
export const isWide = mediaSignal('(width > 60rem)');

function mediaSignal(query: string): ReadonlySignal<boolean> {
  const media = matchMedia(query);
  const answer = signal(media.matches);
  media.addEventListener('change', () => {
    answer.value = media.matches;
  });
  return answer;
}
