// Cluster view: members, leader, and the log position of each member.

import { api } from "../api/client";
import type { Cluster, LogPosition, Member } from "../api/types";
import { bytes, count, duration, plural, visible } from "../model/format";
import { contact_of } from "../model/members";
import { use_poll } from "../model/poll";
import { status } from "../model/server";
import { ClusterActions, MemberActions } from "../parts/cluster_actions";
import { Icon } from "../parts/icon";
import { Loading, Trouble } from "../parts/states";

export function ClusterView() {
  const polled = use_poll(api.cluster, 1_000);
  const cluster = polled.value;
  const here = status.value;
  if (!cluster || !here) {
    return polled.problem ? <Trouble problem={polled.problem} again={polled.again} />
      : <Loading what="Reading the members…" />;
  }
  const has_leader = cluster.leader !== "0";
  const reached = cluster.members.filter((member) => contact_of(member, cluster).is_reached);
  const voters = cluster.members.filter((member) => member.is_voter).length;
  return (
    <>
      <header class="page-head">
        <h1>{cluster.members.length < 2 ? "Single member"
          : `Cluster of ${cluster.members.length} members`}</h1>
        <div class="page-facts">
          <span class={`state ${has_leader ? "is-held" : "is-bad"}`}>
            {has_leader ? `leader: member ${cluster.leader}` : "no leader"}
          </span>
          <span>term {cluster.term}</span>
          <span data-testid="cluster-version">cluster version {cluster.cluster_version}</span>
          <span>cluster <span class="mono">{cluster.cluster}</span></span>
        </div>
      </header>
      {!has_leader && (
        <p class="card is-trouble">The cluster has no leader, so no lock is granted. This member
          is connected to {count(reached.length - 1)} of the other{" "}
          {plural(cluster.members.length - 1, "member")}; a majority
          of {Math.floor(voters / 2) + 1} must be running and connected. An election takes about a
          second.</p>
      )}
      <section class="members" aria-label="Members">
        {cluster.members.map((member) =>
          <MemberCard key={member.member} member={member} cluster={cluster}
                      last={here.log.last_index} on_change={polled.again} />)}
      </section>
      {cluster.members.length < 2 && (
        <p class="quiet">A single member is durable, but unavailable while its machine is down.
          docs/how_to/run_a_cluster.md describes how to extend it to three
          members; <code>make cluster</code> starts an example.</p>
      )}
      {cluster.members.length > 1 && cluster.role === "follower" && (
        <p class="quiet">This member is a follower. Only the leader knows the log positions of the
          other members; its address is {cluster.leader_address || "unknown"}.</p>
      )}
      <ClusterActions cluster={cluster} on_done={polled.again} />
      <LogCard log={here.log} />
      <About />
    </>
  );
}

function MemberCard(props: { member: Member; cluster: Cluster; last: string;
                             on_change: () => void }) {
  const { member, cluster } = props;
  const is_here = member.member === cluster.member;
  const contact = contact_of(member, cluster);
  const is_known = member.match_index !== undefined;
  const lag = is_known ? Number(BigInt(props.last) - BigInt(member.match_index!)) : 0;
  const share = is_known && props.last !== "0"
    ? Number(BigInt(member.match_index!) * 1000n / BigInt(props.last)) / 1000 : 0;
  return (
    <article class={`card member ${member.is_leader ? "is-leader" : ""} ` +
                    (contact.is_reached ? "" : "is-silent")} data-member={member.member}>
      <header>
        <span class="member-light" aria-hidden="true" />
        <h2>Member {member.member}</h2>
        {is_here && <span class="tag">this member</span>}
        <span class="member-role">{contact.role}</span>
      </header>
      <dl class="facts">
        {member.client_address &&
          <div><dt>Client address</dt><dd class="mono">{visible(member.client_address)}</dd></div>}
        {member.peer_address &&
          <div><dt>Peer address</dt><dd class="mono">{visible(member.peer_address)}</dd></div>}
        <div><dt>Newest version</dt><dd data-testid="newest-version"
          title="Newest cluster version its program supports; known for connected members">
          {member.newest_version ?? "–"}</dd></div>
        {is_known && <div><dt>Replicated up to</dt><dd class="mono" data-testid="match">
          {member.match_index}</dd></div>}
        {is_known && !member.is_leader && <div><dt>Lag</dt>
          <dd>{lag <= 0 ? "none" : plural(lag, "entry", "entries")}</dd></div>}
        {member.silent_ms !== undefined && !member.is_leader &&
          <div><dt>Last contact</dt><dd>{duration(member.silent_ms)} ago</dd></div>}
      </dl>
      {is_known && <div class="progress" title={`${member.match_index} of ${props.last}`}>
        <span style={{ transform: `scaleX(${Math.min(1, Math.max(0, share))})` }} /></div>}
      {!contact.is_reached && <p class="error"><Icon name="alert" />No contact. Check that the
        member is running and reachable from this one.</p>}
      <MemberActions member={member} cluster={cluster} is_reachable={contact.is_reached}
                     on_done={props.on_change} />
    </article>
  );
}

/// Log positions of this member: first entry kept, snapshot, applied, committed, last.
function LogCard(props: { log: LogPosition }) {
  const { log } = props;
  const first = Number(log.first_index);
  const last = Math.max(Number(log.last_index), first + 1);
  const share = (index: string) =>
    `${Math.max(0, Math.min(100, (Number(index) - first) * 100 / (last - first)))}%`;
  return (
    <section class="card" aria-label="Log of this member">
      <h2>Log of this member</h2>
      {!log.has_space && <p class="error" role="alert"><Icon name="alert" />The disk is full: new
        commands are rejected until space is free.</p>}
      <div class="log-bar" aria-hidden="true">
        <span class="log-committed" style={{ width: share(log.commit_index) }} />
        {Number(log.snapshot_index) >= first &&
          <span class="log-snapshot" style={{ left: share(log.snapshot_index) }} />}
      </div>
      <dl class="facts">
        <div><dt>First kept</dt><dd class="mono">{log.first_index}</dd></div>
        <div><dt>Snapshot</dt>
          <dd class="mono">{log.snapshot_index === "0" ? "none" : log.snapshot_index}</dd></div>
        <div><dt>Applied</dt><dd class="mono" data-testid="applied">{log.applied_index}</dd></div>
        <div><dt>Committed</dt><dd class="mono">{log.commit_index}</dd></div>
        <div><dt>Last</dt><dd class="mono">{log.last_index}</dd></div>
        <div><dt>Log on disk</dt><dd>{bytes(log.log_bytes)}</dd></div>
        <div><dt>Snapshot on disk</dt><dd>{bytes(log.snapshot_bytes)}</dd></div>
      </dl>
    </section>
  );
}

function About() {
  const here = status.value!;
  return (
    <section class="card" aria-label="About this member">
      <h2>About this member</h2>
      <dl class="facts">
        <div><dt>Name</dt><dd>{visible(here.name) || "–"}</dd></div>
        <div><dt>Version</dt><dd>{here.version}</dd></div>
        <div><dt>Uptime</dt><dd>{duration(here.uptime_ms)}</dd></div>
        <div><dt>Revision</dt><dd class="mono">{here.revision}</dd></div>
        <div><dt>Events kept</dt><dd>{count(here.counts.events)}</dd></div>
        {here.labels && <div><dt>Labels</dt><dd>{visible(here.labels)}</dd></div>}
      </dl>
      <details>
        <summary>Limits</summary>
        <dl class="facts">
          {Object.entries(here.limits).map(([name, value]) => (
            <div key={name}><dt>{name}</dt><dd class="mono">{value}</dd></div>
          ))}
        </dl>
      </details>
    </section>
  );
}
