import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

/** There is nothing to show: what that means, and what to do next. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
