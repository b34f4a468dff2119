import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { ApiError } from '../api.ts';
import { Problem } from './notice.tsx';

interface DialogProps {
  title: string;
  lead?: string;
  footer: ComponentChildren;
  children?: ComponentChildren;
  onClose: () => void;
}

/** Traps the focus while it is open, and restores it afterwards. Escape closes it. */
export function Dialog({ title, lead, footer, children, onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // Nothing outside can have the focus until the dialog is gone.
      queueMicrotask(() => {
        const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
        (isThere ? before : document.querySelector<HTMLElement>('main'))?.focus();
      });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <div>
        <header>
          <h2 id={titleId}>{title}</h2>
          {lead !== undefined && <p class="soft">{lead}</p>}
        </header>
        {children !== undefined && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: A long list is scrolled with the keyboard.
          <section class="body" tabIndex={0} aria-label="Details">
            {children}
          </section>
        )}
        <footer>{footer}</footer>
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  lead: string;
  verb: string;
  children?: ComponentChildren;
  act: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks for confirmation of an action, and shows the error if it fails. */
export function Confirm({ title, lead, verb, children, act, onClose }: ConfirmProps) {
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const confirm = async () => {
    isBusy.value = true;
    error.value = undefined;
    try {
      await act();
      onClose();
    } catch (failed) {
      error.value = failed as ApiError;
    }
    isBusy.value = false;
  };
  const footer = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <button type="button" class="main" disabled={isBusy.value} onClick={() => void confirm()}>
        {verb}
      </button>
    </>
  );
  return (
    <Dialog title={title} lead={lead} footer={footer} onClose={onClose}>
      {children === undefined && error.value === undefined ? undefined : (
        <>
          {children}
          {error.value !== undefined && <Problem error={error.value} />}
        </>
      )}
    </Dialog>
  );
}
