import type { RoleTitle } from '../documents.ts';
import { roles, useLive } from '../live.ts';
import { Field } from './form.tsx';

/** `Officer (20)` */
export function roleWords({ name, rank }: Pick<RoleTitle, 'name' | 'rank'>): string {
  return `${name} (${rank})`;
}

interface RoleFieldProps {
  name: string;
  label: string;
  /** The words for no role; without them, a role must be chosen. */
  none?: string;
  /** All roles, instead of those that can be given. */
  isAny?: boolean;
  chosen?: number | null;
  onChange?: (role: number) => void;
}

/** The list of the ranks that can be given, highest first. */
export function RoleField({ name, label, none, isAny = false, chosen, onChange }: RoleFieldProps) {
  const { data } = useLive(roles);
  const shown =
    data?.roles.filter(({ id, rank }) => (isAny ? rank > 0 && rank < 255 : data.givable.includes(id))) ?? [];
  return (
    <Field name={name} label={label}>
      {(about) => (
        <select {...about} onChange={(event) => onChange?.(Number(event.currentTarget.value))}>
          {none === undefined ? <option value="">choose…</option> : <option value="">{none}</option>}
          {shown.toReversed().map((role) => (
            <option key={role.id} value={role.id} selected={role.id === chosen}>
              {roleWords(role)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
