// Cluster actions of administrators: transfer the leadership, add and remove members, reload files.

import { useState } from "preact/hooks";

import { api } from "../api/client";
import type { Cluster, Member } from "../api/types";
import { plural } from "../model/format";
import { may_administer, may_reload, type Permission } from "../model/rights";
import { rights, status } from "../model/server";
import { ActionButton, ConfirmDialog, Guarded } from "./action";

/// A cluster keeps a majority if one of three voters fails.
const voters_min = 3;

type Action = { kind: "transfer" | "remove"; member: Member } | { kind: "add" | "reload" };

const permission_of = (action: Action): Permission =>
  (action.kind === "reload" ? may_reload(rights.value)
    : may_administer(rights.value, status.value));

/// The permission, or the reason why the state of the cluster does not allow the action.
function unless(permission: Permission, why_not: string): Permission {
  return permission.is_allowed && why_not !== ""
    ? { ...permission, is_allowed: false, why_not } : permission;
}

/// Buttons of one member. They are hidden without the permission; the header shows the reason.
export function MemberActions(props: { member: Member; cluster: Cluster; is_reachable: boolean;
                                       on_done: () => void }) {
  const { member, cluster } = props;
  const [action, set_action] = useState<Action>();
  const permission = may_administer(rights.value, status.value);
  if (!permission.is_allowed || cluster.members.length < 2) {
    return null;
  }
  const voters = cluster.members.filter((one) => one.is_voter).length;
  const why_not_remove = member.is_voter && voters <= voters_min
    ? `A cluster keeps ${voters_min} voters: add a member first.` : "";
  const why_not_lead = !member.is_voter ? "It does not vote yet."
    : !props.is_reachable ? "It cannot be reached." : "";
  return (
    <div class="member-actions">
      {!member.is_leader &&
        <ActionButton icon="overview" label="Make leader" is_danger={false}
                      permission={unless(permission, why_not_lead)}
                      on_ask={() => set_action({ kind: "transfer", member })} />}
      <ActionButton icon="minus" label="Remove" permission={unless(permission, why_not_remove)}
                    on_ask={() => set_action({ kind: "remove", member })} />
      {action && <ActionDialog action={action} cluster={cluster} on_done={props.on_done}
                               on_close={() => set_action(undefined)} />}
    </div>
  );
}

/// Buttons of the cluster and of this member.
export function ClusterActions(props: { cluster: Cluster; on_done: () => void }) {
  const { cluster } = props;
  const [action, set_action] = useState<Action>();
  const [result, set_result] = useState("");
  const done = (text: string) => {
    set_result(text);
    props.on_done();
  };
  return (
    <section class="card" aria-label="Administration">
      <h2>Administration</h2>
      <div class="actions">
        {cluster.members.length > 1 &&
          <ActionButton icon="plus" label="Add member" is_danger={false}
                        permission={may_administer(rights.value, status.value)}
                        on_ask={() => set_action({ kind: "add" })} />}
        <ActionButton icon="user" label="Reload users and certificates" is_danger={false}
                      permission={may_reload(rights.value)}
                      on_ask={() => set_action({ kind: "reload" })} />
      </div>
      {result && <p class="quiet" role="status">{result}</p>}
      {action && <ActionDialog action={action} cluster={cluster} on_result={done}
                               on_done={props.on_done} on_close={() => set_action(undefined)} />}
    </section>
  );
}

interface ActionDialogProps {
  action: Action;
  cluster: Cluster;
  on_done: () => void;
  on_result?: (text: string) => void;
  on_close: () => void;
}

function ActionDialog(props: ActionDialogProps) {
  return (
    <Guarded permission={permission_of(props.action)} on_close={props.on_close}>
      <Confirm {...props} />
    </Guarded>
  );
}

function Confirm(props: ActionDialogProps) {
  const { action, on_close, on_done } = props;
  switch (action.kind) {
    case "transfer": return (
      <ConfirmDialog title={`Make member ${action.member.member} the leader?`}
                     button="Transfer leadership" on_close={on_close} on_done={on_done}
                     run={() => api.transfer_leadership(action.member.member)}>
        <p>Locks, leases and waits continue; clients reconnect to the new leader.</p>
      </ConfirmDialog>
    );
    case "remove": return (
      <ConfirmDialog title={`Remove member ${action.member.member}?`} button="Remove member"
                     is_danger on_close={on_close} on_done={on_done}
                     run={() => api.remove_member(action.member.member)}>
        <p>The member leaves the cluster permanently: its directory cannot join again, and a
          replacement needs a new id. Stop its process afterwards.</p>
      </ConfirmDialog>
    );
    case "reload": return (
      <ConfirmDialog title="Reload users and certificates?" button="Reload" on_close={on_close}
                     on_done={() => {}} run={async () => {
                       const { users } = await api.reload();
                       props.on_result?.(`Reloaded: ${plural(users, "user")}.`);
                     }}>
        <p>This member reads its users file and its certificates again. If one of them is invalid,
          the previous ones stay in force. Other members reload for themselves.</p>
      </ConfirmDialog>
    );
    case "add": return <AddDialog {...props} />;
  }
}

function AddDialog(props: ActionDialogProps) {
  const next = props.cluster.members.reduce((most, member) =>
    (BigInt(member.member) > most ? BigInt(member.member) : most), 0n) + 1n;
  const [member, set_member] = useState({ member: String(next), peer_address: "",
    client_address: "" });
  const field = (name: keyof typeof member, label: string, example: string) => (
    <label class="field"><span>{label}</span>
      <input class="input mono" required value={member[name]} autoComplete="off"
             placeholder={example} spellcheck={false}
             onInput={(event) => set_member({ ...member,
               [name]: event.currentTarget.value.trim() })} />
    </label>
  );
  return (
    <ConfirmDialog title="Add a member" button="Add member" on_close={props.on_close}
                   on_done={props.on_done} run={async () => {
                     await api.add_member(member);
                     props.on_result?.(`Member ${member.member} votes.`);
                   }}>
      <p>Start the member with <code>--join</code> first. It receives the state and then votes,
        which takes as long as the transfer of a snapshot.</p>
      {field("member", "Id, never used before", "4")}
      {field("peer_address", "Address for the other members", "db4:7422")}
      {field("client_address", "Address for clients", "db4:7420")}
    </ConfirmDialog>
  );
}
