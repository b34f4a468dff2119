import type { RoleTitle } from '../documents.ts';
import { roles, useLive } from '../live.ts';
import { Field } from './form.tsx';

function roleWords({ name, rank }: Pick<RoleTitle, 'name' | 'rank'>): string {
  return `${name} (${rank})`;
}

interface RoleFieldProps {
  name: string;
  label: string;
  /** The label of the option for no role. If absent, the user must choose a role. */
  none?: string;
  /** The ids of the roles to choose from, instead of the ranks that can be given. */
  among?: readonly number[];
  /** True to offer all roles except guest and owner, instead of those that can be given. */
  isAny?: boolean;
  chosen?: number | null;
  onChange?: (role: number) => void;
}

export function RoleField({ name, label, none, among, isAny = false, chosen, onChange }: RoleFieldProps) {
  const { data } = useLive(roles);
  const ids = among ?? data?.givable ?? [];
  const shown = data?.roles.filter(({ id, rank }) => (isAny ? rank > 0 && rank < 255 : ids.includes(id))) ?? [];
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
