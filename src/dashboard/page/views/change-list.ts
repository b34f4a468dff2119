import { type Signal, signal } from '@preact/signals';
import { read } from '../api.ts';
import type { Changes } from '../documents.ts';
import { Live } from '../live.ts';

const gapMs = 300;

/** The listed changes, newest first. `fresh` contains the ids of the changes that the last reload added. */
export interface Listed extends Changes {
  fresh: ReadonlySet<string>;
}

/** A search's results. A new change reloads the newest page; older pages are added on demand. */
export class ChangeList {
  readonly live: Live<Changes>;
  readonly listed: Signal<Listed | undefined> = signal(undefined);
  readonly isLoading = signal(false);
  readonly #query: string;

  constructor(query: string) {
    this.#query = query;
    this.live = new Live('changes', async () => {
      const newest = await this.#page();
      this.listed.value = withNewest(newest, this.listed.peek());
      if (newest.changes.length === 0 && newest.next !== null) void this.more();
      return newest;
    });
  }

  /**
   * Loads older changes. Continues after a response without results, because each response covers only part of the
   * history.
   */
  async more(): Promise<void> {
    if (this.isLoading.peek()) return;
    this.isLoading.value = true;
    try {
      for (;;) {
        const before = this.listed.peek();
        if (before === undefined || before.next === null) return;
        const page = await this.#page(before.next);
        const now = this.listed.peek() ?? before;
        // many new changes have restarted the list in the meantime, so this page does not continue it
        if (now.next !== before.next) continue;
        this.listed.value = { ...now, changes: [...now.changes, ...page.changes], next: page.next };
        if (page.changes.length > 0 || !this.live.isShown) return;
        await new Promise((resolve) => setTimeout(resolve, gapMs));
      }
    } finally {
      this.isLoading.value = false;
    }
  }

  #page(before?: string): Promise<Changes> {
    const query = new URLSearchParams(this.#query);
    if (before !== undefined) query.set('before', before);
    return read<Changes>(`changes?${query}`);
  }
}

/** Puts the newest page before the older pages. If changes are missing between them, drops the older pages. */
function withNewest(newest: Changes, listed: Listed | undefined): Listed {
  if (listed === undefined) return { ...newest, fresh: new Set() };
  const known = new Set(listed.changes.map(({ id }) => id));
  const fresh = new Set(newest.changes.filter(({ id }) => !known.has(id)).map(({ id }) => id));
  const overlapIndex = listed.changes.findIndex(({ id }) => id === newest.changes.at(-1)?.id);
  const older = overlapIndex < 0 ? [] : listed.changes.slice(overlapIndex + 1);
  if (older.length === 0) return { ...newest, fresh };
  return { changes: [...newest.changes, ...older], next: listed.next, fresh };
}
