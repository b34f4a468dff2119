interface Declared {
  name: string;
}

/** How declared keys differ from those before, by name: their hashes tell nobody anything. */
export function keyChanges(before: readonly Declared[], now: readonly Declared[]): string {
  const [then, today] = [byName(before), byName(now)];
  const groups = {
    added: now.filter(({ name }) => !then.has(name)),
    changed: now.filter(({ name }) => then.has(name) && then.get(name) !== today.get(name)),
    removed: before.filter(({ name }) => !today.has(name)),
  };
  const told = Object.entries(groups).flatMap(([what, keys]) => (keys.length > 0 ? `${what} ${listed(keys)}` : []));
  return told.join('; ') || 'in another order';
}

function byName(keys: readonly Declared[]): Map<string, string> {
  return new Map(keys.map((key) => [key.name, JSON.stringify(key)]));
}

const maxNamed = 10;

function listed(keys: readonly Declared[]): string {
  const names = keys.slice(0, maxNamed).map(({ name }) => name);
  return [...names, ...(keys.length > maxNamed ? [`${keys.length - maxNamed} more`] : [])].join(', ');
}
