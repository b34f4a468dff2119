import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Dialog } from './dialog.tsx';
import { Notice } from './notice.tsx';

export function SecretDialog({
  title,
  secret,
  children,
  onClose,
}: {
  title: string;
  secret: string;
  children: ComponentChildren;
  onClose: () => void;
}) {
  const state = useSignal<'new' | 'copied' | 'refused'>('new');
  const copy = () =>
    navigator.clipboard.writeText(secret).then(
      () => {
        state.value = 'copied';
      },
      () => {
        state.value = 'refused';
      },
    );
  const footer = (
    <button type="button" onClick={onClose}>
      I have stored it
    </button>
  );
  return (
    <Dialog title={title} footer={footer} onClose={onClose}>
      <Notice>This secret is shown only once: rankd cannot show it again.</Notice>
      <div class="row secret">
        <code>{secret}</code>
        <button type="button" class="main" onClick={() => void copy()}>
          {state.value === 'copied' ? 'Copied' : 'Copy'}
        </button>
      </div>
      <p class="small" role="status">
        {state.value === 'refused' && 'The browser blocked copying: select the text and copy it yourself.'}
      </p>
      {children}
    </Dialog>
  );
}
