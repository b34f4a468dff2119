import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';
import { isRoomy, isWide } from './window.ts';

export interface Column {
  title?: string;
  /** The column's title for screen readers. */
  spoken?: string;
  /** `wide` and `roomy` columns are hidden in windows narrower than the style sheet's breakpoints for them. */
  class?: string;
}

interface TableProps {
  /** The table's contents and order, for screen readers. */
  caption: string;
  columns: Array<string | Column>;
  class?: string;
  children: ComponentChildren;
}

export function Table({ caption, columns, class: name, children }: TableProps) {
  return (
    <table class={name}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => {
            const { title, spoken, class: width } = typeof column === 'string' ? { title: column } : column;
            return (
              <th key={title ?? spoken} scope="col" class={width}>
                {spoken === undefined ? title : <Spoken title={title} spoken={spoken} />}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** Returns the number of columns that the style sheet shows at the current width. */
export function shownColumns(columns: ReadonlyArray<string | Column>): number {
  const isShown: Record<string, boolean> = { roomy: isRoomy.value, wide: isWide.value };
  return columns.filter((column) => typeof column === 'string' || (isShown[column.class ?? ''] ?? true)).length;
}

function Spoken({ title, spoken }: { title: string | undefined; spoken: string }) {
  return (
    <>
      {title !== undefined && <span aria-hidden="true">{title}</span>}
      <span class="unseen">{spoken}</span>
    </>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface MoreProps {
  isLoading: boolean;
  onClick: () => void;
  children: string;
}

export function More({ isLoading, onClick, children }: MoreProps) {
  return (
    <div class="row">
      <button type="button" disabled={isLoading} onClick={onClick}>
        {isLoading ? 'Loading…' : children}
      </button>
    </div>
  );
}
