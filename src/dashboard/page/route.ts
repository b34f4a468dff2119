import { signal } from '@preact/signals';

export const views = ['changes', 'rank', 'suspensions', 'keys', 'webhooks', 'chart', 'pace'] as const;
export type View = (typeof views)[number];

export interface Route {
  view: View;
  params: URLSearchParams;
}

/** The view of the address, e.g. `#/changes?key=my-game`. An unknown view becomes the changes. */
export const route = signal(readRoute());

addEventListener('hashchange', () => {
  route.value = readRoute();
});

export function addressOf(view: View, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '')).toString();
  return `#/${view}${query === '' ? '' : `?${query}`}`;
}

export function go(view: View, params?: Record<string, string>): void {
  location.hash = addressOf(view, params);
}

function readRoute(): Route {
  const [path = '', query] = location.hash.replace(/^#\/?/, '').split('?');
  return { view: views.find((view) => view === path) ?? 'changes', params: new URLSearchParams(query) };
}
