// One lease: its client, its remaining time, its holds and waits.

import { useState } from "preact/hooks";

import { api } from "../api/client";
import type { Lease, Lock } from "../api/types";
import { count, hue, plural, visible } from "../model/format";
import { use_poll } from "../model/poll";
import { may_revoke } from "../model/rights";
import { rights, status } from "../model/server";
import { ActionButton, ConfirmDialog, Guarded } from "../parts/action";
import { Copied, ModeBadge, Name, Running, User } from "../parts/bits";
import { Icon } from "../parts/icon";
import { Empty, Loading, Trouble } from "../parts/states";
import { Since } from "../parts/when";
import { back_to, lock_link } from "../router";
import { TimeLeft } from "./leases";

const shown_max = 200;

export function LeaseView(props: { id: string }) {
  const polled = use_poll(() => api.lease(props.id), 1_000, props.id);
  const [is_revoking, set_revoking] = useState(false);
  const lease = polled.value;
  if (polled.problem?.status === 404) {
    return (
      <Empty icon="lease" title="This lease has ended">
        <p>It expired or was revoked; its holds were released and its waits cancelled.</p>
        <a class="button" href={back_to("leases")}>All leases</a>
      </Empty>
    );
  }
  if (!lease) {
    return polled.problem ? <Trouble problem={polled.problem} again={polled.again} />
      : <Loading what="Reading the lease…" />;
  }
  const held = (lease.locks ?? []).filter((lock) => lock.holders.length > 0);
  const wanted = (lease.locks ?? []).filter((lock) => (lock.queue ?? []).length > 0);
  return (
    <>
      <header class="page-head">
        <a class="back" href={back_to("leases")}><Icon name="back" />Leases</a>
        <div class="title-row">
          <h1><span class="dot" style={{ "--hue": String(hue(lease.client || lease.lease)) }} />
            <span class="break">{visible(lease.client) || "Unnamed client"}</span>
            <User of={lease} /></h1>
          <ActionButton icon="unlock" label="Revoke" on_ask={() => set_revoking(true)}
                        permission={may_revoke(rights.value, status.value, lease.user)} />
        </div>
        <div class="page-facts">
          <span class="mono">{lease.lease}</span><Copied text={lease.lease} what="lease id" />
          {lease.address && <span>{lease.address}</span>}
        </div>
      </header>
      {is_revoking && <RevokeDialog lease={lease} on_done={polled.again}
                                    on_close={() => set_revoking(false)} />}
      <LeaseFacts lease={lease} at={polled.at} />
      <section class="pair">
        <LockList title="Holds" none="This lease holds no locks." locks={held}
                  total={lease.hold_count} at={polled.at} />
        <LockList title="Waits for" none="This lease waits for no lock." locks={wanted}
                  total={lease.wait_count} at={polled.at} />
      </section>
    </>
  );
}

function RevokeDialog(props: { lease: Lease; on_done: () => void; on_close: () => void }) {
  const { lease } = props;
  return (
    <Guarded permission={may_revoke(rights.value, status.value, lease.user)}
             on_close={props.on_close}>
      <ConfirmDialog title="Revoke this lease?" button="Revoke lease" is_danger
                     run={() => api.revoke_lease(lease.lease)} on_done={props.on_done}
                     on_close={props.on_close}>
        <p>The lease of{" "}
          <strong class="break">{visible(lease.client) || "an unnamed client"}</strong> ends
          with {plural(lease.hold_count, "hold")} and {plural(lease.wait_count, "wait")}. The server
          notifies the client, but the client may still be working: its later writes are rejected
          only by storage that checks the fencing token.</p>
      </ConfirmDialog>
    </Guarded>
  );
}

function LeaseFacts(props: { lease: Lease; at: number }) {
  const { lease, at } = props;
  return (
    <div class="card">
      <dl class="facts">
        <div class="is-wide"><dt>Time left</dt><dd><TimeLeft of={lease} at={at} /></dd></div>
        <div><dt>Last renewed</dt><dd><Running ms={lease.seen_ago_ms} at={at} /> ago</dd></div>
        <div class="is-wide"><dt>Age</dt><dd><Running ms={lease.lived_ms} at={at} />
          <span class="quiet"> since <Since ms={lease.lived_ms} at={at} /></span></dd></div>
        {lease.user && <div><dt>User</dt><dd class="break">{visible(lease.user)}</dd></div>}
        <div><dt>Revision</dt><dd class="mono">{lease.create_revision}</dd></div>
      </dl>
    </div>
  );
}

function LockList(props: { title: string; none: string; locks: Lock[]; total: number;
                           at: number }) {
  return (
    <div class="card">
      <h2>{props.title} <span class="quiet">{count(props.total)}</span></h2>
      {props.locks.length === 0 && <p class="quiet">{props.none}</p>}
      <ul class="plain-list">
        {props.locks.slice(0, shown_max).map((lock, i) => {
          const hold = lock.holders[0];
          const wait = lock.queue?.[0];
          return (
            <li key={`${lock.name} ${i}`}>
              <ModeBadge of={hold ?? wait ?? {}} />
              <a href={lock_link(lock)}><Name of={lock} /></a>
              <span class="number">
                <Running ms={hold?.held_for_ms ?? wait?.waited_ms ?? 0} at={props.at} />
              </span>
            </li>
          );
        })}
      </ul>
      {props.total > shown_max && <p class="quiet">{count(props.total - shown_max)} more</p>}
    </div>
  );
}
