/** Begins the title of every group that is simulated, and of no other; see `groupTitle`. */
export const simulatedGroup = 'the simulated group';

/** Whether the group of this title is simulated. */
export function isSimulatedGroup(title: string): boolean {
  return title.startsWith(simulatedGroup);
}
