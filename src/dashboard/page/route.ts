import { computed, signal } from '@preact/signals';
import { status } from './live.ts';

export const views = ['changes', 'rank', 'suspensions', 'keys', 'webhooks', 'chart', 'pace', 'setup'] as const;
export type View = (typeof views)[number];

export interface Route {
  view: View;
  params: URLSearchParams;
}

const hash = signal(location.hash);

addEventListener('hashchange', () => {
  hash.value = location.hash;
});

/**
 * The view that the address names, e.g. `#/changes?key=my-game`. The default is `setup` while the group is simulated,
 * and `changes` otherwise.
 */
export const route = computed((): Route => {
  const [path = '', query] = hash.value.replace(/^#\/?/, '').split('?');
  const first = status.data.value?.simulated === true ? 'setup' : 'changes';
  return { view: views.find((view) => view === path) ?? first, params: new URLSearchParams(query) };
});

/** True if the address names no view and the default view is not known yet. */
export const isUndecided = computed(
  () => hash.value === '' && status.data.value === undefined && status.error.value === undefined,
);

export function addressOf(view: View, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '')).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}

export function go(view: View, params?: Record<string, string>): void {
  location.hash = addressOf(view, params);
}
