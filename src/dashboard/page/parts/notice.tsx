import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api.ts';
import { Icon } from './icon.tsx';

export function Notice({ tone = 'warn', children }: { tone?: 'warn' | 'bad' | 'good'; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`}>
      <Icon name={tone === 'good' ? 'yes' : 'warning'} />
      <div>{children}</div>
    </div>
  );
}

/** What went wrong, and what mends it. */
export function Problem({ error }: { error: ApiError }) {
  const hint = error.details.try;
  return (
    <div role="alert">
      <Notice tone="bad">
        <p>{error.message}</p>
        {hint !== undefined && (
          <p class="small">
            Try: <Hint text={hint} />
          </p>
        )}
      </Notice>
    </div>
  );
}

/** A hint with its commands set off: between backquotes, or as a whole if it begins with `rankd`. */
export function Hint({ text }: { text: string }) {
  if (text.startsWith('rankd ')) return <code>{text}</code>;
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={`${index}`}>{part}</code> : part))}</>;
}
