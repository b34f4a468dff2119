import type { ComponentChildren } from 'preact';

export interface Column {
  title?: string;
  /** Read by screen readers instead of the title. */
  spoken?: string;
  /** `wide`, `roomy`: shown only in windows of at least that width. */
  class?: string;
}

interface TableProps {
  /** Contents and order of the table, for users who can't see the heading. */
  caption: string;
  columns: Array<string | Column>;
  class?: string;
  /** The rows. */
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

function Spoken({ title, spoken }: { title: string | undefined; spoken: string }) {
  return (
    <>
      {title !== undefined && <span aria-hidden="true">{title}</span>}
      <span class="unseen">{spoken}</span>
    </>
  );
}
