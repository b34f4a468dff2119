import type { LiveContext } from '../usecases/daemon-context.ts';

const everyMs = 86_400_000;

/** Warns of the platform's surprises: of each kind once a day at most. What came with a change was logged with it. */
export class SurpriseWarnings {
  /** By kind: which one the log told, and until when (on `Clock.monotonic()`) it tells no other. */
  readonly #told = new Map<string, { lastAt: number; until: number }>();

  warn({ current: { platform, clock, log } }: LiveContext): void {
    const now = clock.monotonic();
    for (const { operation, what, count, lastAt } of platform.surprises()) {
      const kind = `${operation} ${what}`;
      const told = this.#told.get(kind);
      if (told !== undefined && (told.lastAt === lastAt || now < told.until)) continue;
      this.#told.set(kind, { lastAt, until: now + everyMs });
      log.warn({ operation, what, count }, 'Roblox answers otherwise than rankd was built for: rankd status shows how');
    }
  }
}
