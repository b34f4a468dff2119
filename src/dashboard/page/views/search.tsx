import { useEffect, useRef } from 'preact/hooks';
import type { ApiError } from '../api.ts';
import { changeStates } from '../parts/change-words.tsx';
import { isWide } from '../parts/window.ts';
import { addressOf, go } from '../route.ts';

const fields = {
  user: { label: 'Member', placeholder: 'name or id' },
  ranker: { label: 'By player', placeholder: 'name or id' },
  key: { label: 'Key', placeholder: 'name or id' },
  place: { label: 'Place', placeholder: 'id' },
  state: { label: 'State', placeholder: '' },
  since: { label: 'Since', placeholder: '24h or a date' },
  until: { label: 'Until', placeholder: '1h or a date' },
} as const;

/** Every filter that the address can contain, including `by` and `undo`, which have no field. */
export const filters = [...Object.keys(fields), 'by', 'undo'];

export function activeFilters(params: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    filters.flatMap((name) => {
      const value = params.getAll(name).join(',').trim();
      return value === '' ? [] : [[name, value]];
    }),
  );
}

/** The search form, which puts the filters into the address. It retains typed text, even if it is invalid. */
export function Search({ active, error }: { active: Record<string, string>; error: ApiError | undefined }) {
  const form = useRef<HTMLFormElement>(null);
  const box = useRef<HTMLDetailsElement>(null);
  const wrong = error?.details.field;
  useEffect(() => {
    // In narrow windows, the search opens only on demand, because there is no room above the table.
    if (isWide.value && box.current !== null) box.current.open = true;
  }, [isWide.value]);
  useEffect(() => {
    if (wrong !== undefined && box.current !== null) box.current.open = true;
  }, [wrong]);
  useEffect(() => {
    for (const name of Object.keys(fields)) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = active[name] ?? '';
    }
  }, [JSON.stringify(active)]);
  const search = (event: Event) => {
    event.preventDefault();
    const typed = [...new FormData(event.currentTarget as HTMLFormElement)].map(([name, value]) => [
      name,
      `${value}`.trim(),
    ]);
    go('changes', Object.fromEntries(typed));
  };
  return (
    <details ref={box} class="sheet fold search-fold">
      <summary>
        Search{Object.keys(active).length > 0 && <span class="soft"> ({Object.values(active).join(', ')})</span>}
      </summary>
      <form ref={form} class="search" onSubmit={search}>
        {Object.entries(fields).map(([name, { label, placeholder }]) => {
          const about = {
            id: `search-${name}`,
            name,
            'aria-invalid': wrong === name,
            ...(wrong === name && { 'aria-describedby': `wrong-${name}` }),
          };
          return (
            <div class="field" key={name}>
              <label for={about.id}>{label}</label>
              {name === 'state' ? (
                <States {...about} />
              ) : (
                <input {...about} placeholder={placeholder} autocomplete="off" spellcheck={false} />
              )}
              {wrong === name && (
                <p class="wrong" id={`wrong-${name}`} role="alert">
                  {error?.message}
                </p>
              )}
            </div>
          );
        })}
        <div class="row">
          <button type="submit" class="main">
            Search
          </button>
          {Object.keys(active).length > 0 && <a href={addressOf('changes')}>Clear</a>}
        </div>
      </form>
    </details>
  );
}

function States(about: Record<string, unknown>) {
  return (
    <select {...about}>
      <option value="">any</option>
      {changeStates.map((state) => (
        <option key={state} value={state}>
          {state}
        </option>
      ))}
      <option value="refused,failed,unknown">refused, failed or unknown</option>
    </select>
  );
}
