/**
 * Preloaded into a process: four seconds pass for it in one. At a higher speed, a busy machine would not respond in
 * time. The wall clock is unchanged.
 */
const speed = 4;

const elapsed = performance.now.bind(performance);
performance.now = () => elapsed() * speed;
const later = globalThis.setTimeout;
globalThis.setTimeout = ((work: () => void, ms = 0, ...args: []) => later(work, ms / speed, ...args)) as typeof later;
