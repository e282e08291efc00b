// Permissions of the user, evaluated like on the server, so that the page offers no action that
// the server would refuse.

import type { Level, Rights } from "../api/types";

const levels: Level[] = ["none", "read", "lock", "admin"];

/// The rule with the longest matching prefix decides; without a match nothing is allowed.
export function level_of(rights: Rights, name: string): Level {
  if (!rights.has_users) {
    return "admin";
  }
  let found: Rights["rights"][number] | undefined;
  for (const rule of rights.rights) {
    if (!rule.prefix_encoding && name.startsWith(rule.prefix) &&
        rule.prefix.length >= (found?.prefix.length ?? 0)) {
      found = rule;
    }
  }
  return found?.level ?? "none";
}

export function may(rights: Rights, level: Level, name: string): boolean {
  return levels.indexOf(level_of(rights, name)) >= levels.indexOf(level);
}

/// The server requires a login and the user has not logged in.
export function is_locked_out(rights: Rights | undefined): boolean {
  return rights !== undefined && rights.has_users && rights.user === "";
}
