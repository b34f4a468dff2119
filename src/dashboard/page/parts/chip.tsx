import { Icon, type IconName } from './icon.tsx';

/** A state's color and icon. Color alone must never convey a state. */
export interface Appearance {
  tone: 'good' | 'warn' | 'bad' | 'open' | 'odd' | 'quiet';
  icon: IconName;
}

export function Chip({ tone, icon, children }: Appearance & { children: string }) {
  return (
    <span class={`chip ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}
