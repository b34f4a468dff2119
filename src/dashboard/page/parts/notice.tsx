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

/** Shows a hint with its commands formatted as code: the parts between backquotes, and a command at the beginning. */
export function Hint({ text }: { text: string }) {
  const [command] = /^rankd [^,;]+/.exec(text) ?? [];
  if (command !== undefined)
    return (
      <>
        <Shell line={command} />
        <Hint text={text.slice(command.length)} />
      </>
    );
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <Shell key={`${index}`} line={part} /> : part))}</>;
}

/** Shows a command as the operator types it on the daemon's machine, e.g. with `npx rankd` instead of `rankd`. */
export function Shell({ line }: { line: string }) {
  return <code>{line.replace(/^rankd(?= )/, session.value?.typedAs ?? 'rankd').trimStart()}</code>;
}
