import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { type Live, useLive } from '../live.ts';
import { Problem } from '../parts/notice.tsx';

interface ViewProps<T> {
  title: string;
  live: Live<T>;
  lead?: (data: T) => string;
  action?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

export function LiveView<T>({ title, live, lead, action, children }: ViewProps<T>) {
  const { data, error } = useLive(live);
  return (
    <>
      <div class="title">
        <h1>{title}</h1>
        {data !== undefined && lead !== undefined && <p class="soft">{lead(data)}</p>}
        {data !== undefined && action && <div class="actions">{action}</div>}
      </div>
      {error !== undefined && <Problem error={error} />}
      {data !== undefined && children(data)}
    </>
  );
}

export function NewButton({ opens, children }: { opens: Signal<boolean>; children: string }) {
  return (
    <button
      type="button"
      class="main"
      onClick={() => {
        opens.value = true;
      }}
    >
      {children}
    </button>
  );
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
