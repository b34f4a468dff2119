import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo, useRef } from 'preact/hooks';
import { type ApiError, newKey } from '../api.ts';
import type { Change } from '../documents.ts';
import { FormError } from './form.tsx';
import { Notice, Problem } from './notice.tsx';

interface DialogProps {
  title: string;
  lead?: string;
  footer: ComponentChildren;
  children?: ComponentChildren;
  onClose: () => void;
  onSubmit?: (form: HTMLFormElement) => void;
}

/** A modal dialog, which traps the focus while it is open and restores it afterwards. Escape closes it. */
export function Dialog({ title, lead, footer, children, onClose, onSubmit }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // Elements outside the dialog cannot take the focus until it is gone.
      queueMicrotask(() => {
        const canRefocus = before instanceof HTMLElement && before.isConnected && before !== document.body;
        (canRefocus ? before : document.querySelector<HTMLElement>('main'))?.focus();
      });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.(event.currentTarget);
        }}
      >
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
      </form>
    </dialog>
  );
}

export function Done({ change, onClose }: { change: Change; onClose: () => void }) {
  return (
    <Dialog title="Done" footer={<CloseButton onClose={onClose} />} onClose={onClose}>
      <Notice tone="good">
        <p role="status">{change.message}</p>
      </Notice>
    </Dialog>
  );
}

export function CloseButton({ onClose }: { onClose: () => void }) {
  return (
    <button type="button" class="main" onClick={onClose}>
      Close
    </button>
  );
}

interface ConfirmProps<Result> {
  title: string;
  lead: string;
  verb: string;
  /** True if the action can't be undone. */
  isIrreversible?: boolean;
  /** False until a dry run has allowed the action. */
  isAllowed?: boolean;
  children?: ComponentChildren;
  /** Performs the action. `once` is the idempotency key, which is the same for every attempt. */
  act: (values: FormData, once: string) => Promise<Result>;
  /** Receives `act`'s result. By default, closes the dialog. */
  onDone?: (result: Result) => void;
  onClose: () => void;
}

export function Confirm<Result>({
  title,
  lead,
  verb,
  isIrreversible = false,
  isAllowed = true,
  children,
  act,
  onDone,
  onClose,
}: ConfirmProps<Result>) {
  const error = useSignal<ApiError | undefined>(undefined);
  const isBusy = useSignal(false);
  const once = useMemo(newKey, []);
  const confirm = async (form: HTMLFormElement) => {
    if (isBusy.value || !isAllowed) return;
    isBusy.value = true;
    error.value = undefined;
    try {
      const result = await act(new FormData(form), once);
      (onDone ?? onClose)(result);
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
      <button type="submit" class={isIrreversible ? 'main grave' : 'main'} disabled={isBusy.value || !isAllowed}>
        {verb}
      </button>
    </>
  );
  return (
    <Dialog title={title} lead={lead} footer={footer} onClose={onClose} onSubmit={(form) => void confirm(form)}>
      {children === undefined && error.value === undefined ? undefined : (
        <FormError.Provider value={error.value}>
          {children}
          <OtherProblem error={error.value} />
        </FormError.Provider>
      )}
    </Dialog>
  );
}

/** Shows an error, unless its field already shows it. */
export function OtherProblem({ error }: { error: ApiError | undefined }) {
  const at = error?.details.field;
  const isShown = at !== undefined && document.querySelector(`.field [name="${CSS.escape(at)}"]`) !== null;
  return error === undefined || isShown ? null : <Problem error={error} />;
}
