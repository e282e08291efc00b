// What this member knows about the other members of its cluster.

import type { Cluster, Member } from "../api/types";

/// Silence after which the leader takes a member for unreachable.
const silent_max_ms = 2_000;

export interface Contact {
  is_reached: boolean;
  role: string;
}

/// Only the leader measures silence. Every member knows the members it is connected to, because
/// they have exchanged their versions.
export function contact_of(member: Member, cluster: Cluster): Contact {
  const is_here = member.member === cluster.member;
  const is_silent = !member.is_leader && (member.silent_ms ?? 0) > silent_max_ms;
  const is_reached = is_here || (member.newest_version !== undefined && !is_silent);
  const role = !is_reached ? "unreachable" : member.is_leader ? "leader"
    : !member.is_voter ? "learner" : cluster.leader === "0" ? "voter" : "follower";
  return { is_reached, role };
}
