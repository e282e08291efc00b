// Groups of identical deadlocks.

import type { CycleStep, Deadlock } from "../api/types";

export interface DeadlockGroup {
  key: string;
  latest: Deadlock;
  first: Deadlock; ///< The oldest one that the server remembers.
  count: number;
}

/// Deadlocks are identical if the same owners wait for the same locks in the same order, whichever
/// became the victim. REQUIRES: newest first. Returns the groups by their latest deadlock.
export function group_deadlocks(deadlocks: readonly Deadlock[]): DeadlockGroup[] {
  const groups = new Map<string, DeadlockGroup>();
  for (const deadlock of deadlocks) {
    const key = key_of_cycle(deadlock.cycle);
    const group = groups.get(key);
    if (group) {
      group.first = deadlock;
      group.count += 1;
    } else {
      groups.set(key, { key, latest: deadlock, first: deadlock, count: 1 });
    }
  }
  return [...groups.values()];
}

/// The same for every rotation of the cycle: it begins with the smallest step.
function key_of_cycle(cycle: readonly CycleStep[]): string {
  const steps = cycle.map((step) =>
    JSON.stringify([step.kind, step.name, step.name_encoding ?? "", step.owner || step.lease]));
  const rotations = steps.map((_, i) => [...steps.slice(i), ...steps.slice(0, i)].join());
  return rotations.sort()[0] ?? "";
}
