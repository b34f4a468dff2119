import type { ComponentChildren } from 'preact';
import { type ApiError, session } from '../api.ts';
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
        {hint != null && (
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
  if (text.startsWith('rankd ')) return <Shell line={text} />;
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <Shell key={`${index}`} line={part} /> : part))}</>;
}

/** A command as the operator types it on the daemon's machine, which may need `npx rankd` for `rankd`. */
export function Shell({ line }: { line: string }) {
  return <code>{line.replace(/^rankd(?= )/, session.value?.typedAs ?? 'rankd')}</code>;
}
