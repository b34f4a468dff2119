import { Icon, type IconName } from './icon.tsx';

/** A state's color and icon. A state is never shown by color alone. */
export interface Look {
  tone: 'good' | 'warn' | 'bad' | 'open' | 'odd' | 'quiet';
  icon: IconName;
}

export function Chip({ tone, icon, children }: Look & { children: string }) {
  return (
    <span class={`chip ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}
