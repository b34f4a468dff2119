import { Icon, type IconName } from './icon.tsx';

export type Tone = 'good' | 'warn' | 'bad' | 'open' | 'odd' | 'quiet';

/** A state, which is never shown by color alone. */
export function Chip({ tone, icon, children }: { tone: Tone; icon: IconName; children: string }) {
  return (
    <span class={`chip ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}
