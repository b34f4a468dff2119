/** Begins the title of every group that is simulated, and of no other; see `groupTitle`. */
export const simulatedGroup = 'the simulated group';

/** Whether the group of this title is simulated. */
export function isSimulatedGroup(title: string): boolean {
  return title.startsWith(simulatedGroup);
}

/** The id of the real group in its title; `undefined` if the group is simulated. */
export function groupIdIn(title: string): number | undefined {
  const id = /^group (\d+) /.exec(title)?.[1];
  return id === undefined ? undefined : Number(id);
}
