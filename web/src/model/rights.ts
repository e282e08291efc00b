// Permissions of the user, evaluated like on the server, so that the page offers no action that
// the server would refuse.

import type { Level, Rights, Status } from "../api/types";

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

/// Whether an action is offered. A button that is shown and not allowed has a reason.
export interface Permission {
  is_shown: boolean;
  is_allowed: boolean;
  needs_secret: boolean; ///< Allowed after the secret of the server was given.
  why_not: string; ///< Empty if allowed.
}

const hidden: Permission = { is_shown: false, is_allowed: false, needs_secret: false, why_not: "" };

function permission(rights: Rights | undefined, status: Status | undefined,
                    of: { may: boolean; needs_secret: boolean; reason: string }): Permission {
  const why_not = !rights ? "Waiting for the server"
    : !of.may && !of.needs_secret ? `Not allowed: ${of.reason}`
    : status?.role !== "follower" ? ""
    : status.log.leader === "0" ? "The cluster has no leader"
    : `This member is a follower; use the leader, member ${status.log.leader}` +
      (status.log.leader_address ? ` at ${status.log.leader_address}` : "");
  return { is_shown: true, is_allowed: why_not === "", needs_secret: !of.may && of.needs_secret,
    why_not };
}

/// Force-release of a lock: for users with the permission admin for its name.
export function may_force(rights: Rights | undefined, status: Status | undefined, name: string):
    Permission {
  if (rights?.has_users && !(rights.may_force && may(rights, "admin", name))) {
    return hidden;
  }
  return permission(rights, status, { may: rights?.may_force ?? false,
    needs_secret: rights?.needs_secret ?? false, reason: rights?.force_reason ?? "" });
}

/// Revocation of a lease: for its user, and for administrators.
export function may_revoke(rights: Rights | undefined, status: Status | undefined, user: string):
    Permission {
  if (rights?.has_users && rights.user !== user && !may(rights, "admin", "")) {
    return hidden;
  }
  return permission(rights, status, { may: rights?.may_lock ?? false,
    needs_secret: rights?.lock_needs_secret ?? false, reason: rights?.lock_reason ?? "" });
}

/// Changes of members and leadership: for administrators, at the leader.
export function may_administer(rights: Rights | undefined, status: Status | undefined):
    Permission {
  return permission(rights, status, { may: rights?.may_administer ?? false,
    needs_secret: rights?.needs_secret ?? false, reason: rights?.administer_reason ?? "" });
}

/// Reload of users and certificates: every member does it for itself.
export function may_reload(rights: Rights | undefined): Permission {
  return may_administer(rights, undefined);
}

/// The server requires a login and the user has not logged in.
export function is_locked_out(rights: Rights | undefined): boolean {
  return rights !== undefined && rights.has_users && rights.user === "";
}
