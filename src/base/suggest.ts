/** The candidate that a mistyped name most likely means; `undefined` if none is near. */
export function suggest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const maxEdits = Math.max(1, wanted.length / 4);
  let best: { candidate: string; edits: number } | undefined;
  for (const candidate of candidates) {
    const letters = plain(candidate);
    if (Math.abs(letters.length - wanted.length) > maxEdits) continue; // each letter that is added or missing is an edit
    const edits = sorted(wanted) === sorted(letters) ? 1 : editDistance(wanted, letters); // letters that changed places
    if (edits <= maxEdits && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { candidate, edits };
  }
  return best?.candidate;
}

/** Drops what people mix up freely: `maxRank`, `max-rank`, `max_rank` and `max rank` are one name. */
function plain(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replaceAll(/[-_\s]/g, '');
}

function sorted(text: string): string {
  return [...text].sort().join('');
}

/** Levenshtein: how many letters to add, drop or replace to get from one text to the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const letter of from) {
    const above = row;
    row = [(above[0] ?? 0) + 1];
    for (let index = 0; index < to.length; index += 1) {
      const replaced = (above[index] ?? 0) + (letter === to[index] ? 0 : 1);
      row.push(Math.min(replaced, (above[index + 1] ?? 0) + 1, (row[index] ?? 0) + 1));
    }
  }
  return row.at(-1) ?? 0;
}
