import { computed } from '@preact/signals';
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useId, useRef } from 'preact/hooks';
import { type ApiError, session } from '../api.ts';

/** False in a view-only session, which hides the buttons that change anything, and until the session is known. */
export const mayChange = computed(() => session.value?.viewOnly === false);

export const FormError = createContext<ApiError | undefined>(undefined);

interface About {
  id: string;
  name: string;
  'aria-invalid': boolean;
  'aria-describedby'?: string;
}

interface FieldProps {
  name: string;
  label: string;
  hint?: ComponentChildren;
  children: (about: About) => ComponentChildren;
}

/** A control with its label. An error about the field appears below the control, and moves the focus to it. */
export function Field({ name, label, hint, children }: FieldProps) {
  const error = useContext(FormError);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const isWrong = error?.details.field === name;
  useEffect(() => {
    if (isWrong) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  const isDescribed = isWrong || hint !== undefined;
  return (
    <div ref={box} class="field">
      <label for={id}>{label}</label>
      {children({ id, name, 'aria-invalid': isWrong, ...(isDescribed && { 'aria-describedby': `${id}-about` }) })}
      {isDescribed && (
        <p id={`${id}-about`} class={isWrong ? 'wrong' : 'small soft'} role={isWrong ? 'alert' : undefined}>
          {isWrong ? error.message.replace(/^`\w+` (.)/, (_, first) => first.toUpperCase()) : hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends Omit<FieldProps, 'children'> {
  /** True for a secret. */
  isHidden?: boolean;
  value?: string;
  placeholder?: string;
  maxLength?: number;
  onInput?: (text: string) => void;
}

export function TextField({ name, label, hint, isHidden = false, onInput, ...rest }: TextFieldProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(about) => {
        const input = {
          ...{ ...rest, ...about, autocomplete: 'off', spellcheck: false },
          onInput: (event: Event) => onInput?.((event.currentTarget as HTMLInputElement).value),
        };
        return isHidden ? <input type="password" {...input} /> : <input {...input} />;
      }}
    </Field>
  );
}

interface Choice {
  value: string;
  words: string;
  isChosen?: boolean;
}

export function Choices({
  name,
  label,
  isSingleChoice = false,
  choices,
}: {
  name: string;
  label: string;
  isSingleChoice?: boolean;
  choices: Choice[];
}) {
  const error = useContext(FormError);
  const isWrong = error?.details.field === name;
  return (
    <fieldset class="field" aria-invalid={isWrong}>
      <legend>{label}</legend>
      {choices.map(({ value, words, isChosen }) => (
        <label key={value} class="row check">
          <input
            type={isSingleChoice ? 'radio' : 'checkbox'}
            name={name}
            value={value}
            defaultChecked={isChosen ?? false}
          />
          {words}
        </label>
      ))}
      {isWrong && (
        <p class="wrong" role="alert">
          {error.message}
        </p>
      )}
    </fieldset>
  );
}

export function Reason() {
  return <TextField name="reason" label="Reason, for the history (optional)" maxLength={200} />;
}

export function textOf(values: FormData, name: string): string {
  return String(values.get(name) ?? '').trim();
}
