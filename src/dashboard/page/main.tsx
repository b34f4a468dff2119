import { render } from 'preact';
import { base, logIn, loginState, resumeSession, send } from './api.ts';
import { listen } from './live.ts';
import { mayChange } from './parts/form.tsx';
import { Frame } from './parts/frame.tsx';
import { isDaemonSilent } from './parts/head.tsx';
import { Boundary, LogIn } from './parts/outside.tsx';
import { isUndecided, route, type View } from './route.ts';
import { Changes } from './views/changes.tsx';
import { ChartView } from './views/chart.tsx';
import { Keys } from './views/keys.tsx';
import { Pace } from './views/pace.tsx';
import { Rank } from './views/rank.tsx';
import { Setup } from './views/setup.tsx';
import { Suspensions } from './views/suspensions.tsx';
import { Webhooks } from './views/webhooks.tsx';

const shown: Record<View, () => preact.JSX.Element> = {
  changes: Changes,
  rank: Rank,
  suspensions: Suspensions,
  keys: Keys,
  webhooks: Webhooks,
  chart: ChartView,
  pace: Pace,
  setup: Setup,
};

function Page() {
  if (loginState.value === 'unknown') return null;
  if (loginState.value === 'out') return <LogIn />;
  const View = shown[route.value.view];
  return (
    <Frame isDaemonSilent={isDaemonSilent.value}>
      <Boundary key={route.value.view}>{!isUndecided.value && <View />}</Boundary>
    </Frame>
  );
}

/**
 * Logs in with the link in the address bar, and removes it from there so that others cannot read it. Without a link,
 * resumes the session.
 */
function begin(): Promise<void> {
  if (location.pathname !== `${base}login`) return resumeSession();
  const link = location.hash.slice(1);
  history.replaceState(null, '', base);
  return link === '' ? resumeSession() : logIn(link);
}

const activeGapMs = 60_000;
let activeAt = Number.NEGATIVE_INFINITY;

/** Reports activity to the daemon, because an idle session can't change anything. */
function reportActivity(): void {
  if (loginState.peek() !== 'in' || !mayChange.peek() || performance.now() - activeAt < activeGapMs) return;
  activeAt = performance.now();
  send('active', {}).catch(() => undefined);
}

for (const event of ['pointerdown', 'keydown']) addEventListener(event, reportActivity, { passive: true });
document.body.replaceChildren(); // removes the placeholder that was shown while the scripts loaded
render(<Page />, document.body);
begin().catch(() => undefined); // the page shows the error
listen();
