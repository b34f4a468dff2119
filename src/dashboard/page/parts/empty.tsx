import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

/** Shown in place of an empty list: its meaning, and the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
