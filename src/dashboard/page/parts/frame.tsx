import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { status, useLive } from '../live.ts';
import { addressOf, route, type View, views } from '../route.ts';
import { Head } from './head.tsx';
import { Brand, Icon } from './icon.tsx';

const viewNames: Record<View, string> = {
  changes: 'Changes',
  rank: 'Rank',
  suspensions: 'Suspensions',
  keys: 'Keys',
  webhooks: 'Webhooks',
  chart: 'Chart',
  pace: 'Pace',
  setup: 'Set-up',
};

export function Frame({ isDaemonSilent, children }: { isDaemonSilent: boolean; children: ComponentChildren }) {
  const { view } = route.value;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${viewNames[view]} · rankd`;
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [view]);
  return (
    <div class={isDaemonSilent ? 'frame away' : 'frame'}>
      <button type="button" class="skip unseen" onClick={() => main.current?.focus()}>
        Skip to the view
      </button>
      <nav class="rail" aria-label="Views">
        <Brand />
        <ul class="views">
          {views.map((name) => (
            <li key={name}>
              <a href={addressOf(name)} aria-current={name === view ? 'page' : undefined}>
                <Icon name={name} />
                {viewNames[name]}
                <Mark view={name} />
              </a>
            </li>
          ))}
        </ul>
        <Version />
      </nav>
      <Head />
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function Mark({ view }: { view: View }) {
  const { data } = useLive(status);
  const failing = data?.webhooks?.filter(({ state }) => state === 'failing').length ?? 0;
  const stuck = data?.stuckSuspensions?.length ?? 0;
  if (view === 'webhooks' && failing > 0)
    return (
      <span class="mark chip bad">
        {failing}
        <span class="unseen"> failing</span>
      </span>
    );
  if (view === 'suspensions' && stuck > 0)
    return (
      <span class="mark chip bad">
        {stuck}
        <span class="unseen"> stuck</span>
      </span>
    );
  return null;
}

function Version() {
  const { data } = useLive(status);
  return <p class="version small soft">{data !== undefined && `version ${data.version}`}</p>;
}
