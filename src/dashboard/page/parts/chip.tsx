import { Icon, type IconName } from './icon.tsx';

export type Tone = 'good' | 'warn' | 'bad' | 'open' | 'odd' | 'quiet';

/** The state of something: its color never tells it alone. */
export function Chip({ tone, icon, children }: { tone: Tone; icon: IconName; children: string }) {
  return (
    <span class={`chip ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}
