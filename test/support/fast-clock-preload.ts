/** Loaded into a process before anything else: for it, four seconds pass in one. Faster, a busy machine would not answer in time. The wall clock stays as it is. */
const speed = 4;

const elapsed = performance.now.bind(performance);
performance.now = () => elapsed() * speed;
const later = globalThis.setTimeout;
globalThis.setTimeout = ((work: () => void, ms = 0, ...args: []) => later(work, ms / speed, ...args)) as typeof later;
