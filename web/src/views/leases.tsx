// All leases with their remaining time.

import { useMemo, useState } from "preact/hooks";

import { now } from "../model/clock";
import { count, duration, hue, plural, short_id, visible } from "../model/format";
import { arrange_leases, leases_max, read_leases, type LeaseRow, type LeaseSort } from
  "../model/leases";
import { use_poll } from "../model/poll";
import { choice } from "../model/query";
import { User } from "../parts/bits";
import { Icon } from "../parts/icon";
import { use_narrow } from "../parts/narrow";
import { Empty, Loading, Trouble } from "../parts/states";
import { VirtualList } from "../parts/virtual_list";
import { lease_link, query, set_query } from "../router";

const columns: [LeaseSort, string][] = [["client", "Client"], ["lease", "Lease"],
  ["left", "Time left"], ["holds", "Holds"], ["waits", "Waits"]];

export function Leases() {
  const [pace, set_pace] = useState(1_000);
  const polled = use_poll(async () => {
    const list = await read_leases();
    set_pace(list.rows.length <= 1_000 ? 1_000 : list.rows.length <= 5_000 ? 5_000 : 30_000);
    return list;
  }, pace);
  const is_narrow = use_narrow();
  const { search, sort, is_descending } = order_of(query.value);
  const rows = useMemo(
    () => arrange_leases(polled.value?.rows ?? [], search, sort, is_descending),
    [polled.value, search, sort, is_descending]);
  if (!polled.value) {
    return polled.problem ? <Trouble problem={polled.problem} again={polled.again} />
      : <Loading what="Reading the leases…" />;
  }
  const total = polled.value.rows.length;
  return (
    <>
      <h1 class="hidden">Leases</h1>
      <div class="tools">
        <label class="search">
          <Icon name="search" />
          <input type="search" placeholder="Search clients, addresses, ids" spellcheck={false}
                 aria-label="Search clients, addresses, ids" value={search}
                 onInput={(event) => set_query({ q: event.currentTarget.value })} />
        </label>
        <span class="tools-note" role="status" data-testid="shown">
          {rows.length === total ? plural(total, "lease")
            : `${count(rows.length)} of ${plural(total, "lease")}`}
          {polled.value.is_cut && `, the first ${count(leases_max)} by id`}
          {pace > 1_000 && `, updated every ${pace / 1000} s`}
        </span>
      </div>
      {total === 0
        ? <Empty icon="lease" title="No leases">
            <p>Every lock is attached to a lease, which its client renews. Leases appear here when
              a client connects and acquires a lock.</p>
          </Empty>
        : rows.length === 0
        ? <Empty icon="search" title="No matching leases">
            <button class="button" onClick={() => set_query({ q: undefined })}>
              Show all leases</button>
          </Empty>
        : <VirtualList items={rows} label="Leases" row_height={is_narrow ? 72 : 48} columns={5}
            key_of={(row) => row.lease} link_of={(row) => lease_link(row.lease)} head={<Head />}
            render={(row) => <Cells row={row} />} />}
    </>
  );
}

const sorts: readonly LeaseSort[] = ["left", "client", "lease", "holds", "waits"];

/// Search and order in the URL.
function order_of(from: URLSearchParams) {
  return { search: from.get("q") ?? "", sort: choice(from, "sort", sorts, "left"),
    is_descending: from.get("order") === "desc" };
}

function Head() {
  const { sort, is_descending } = order_of(query.value);
  const choose = (key: LeaseSort) => {
    const descends = key === sort ? !is_descending : key === "holds" || key === "waits";
    set_query({ sort: key === "left" ? undefined : key, order: descends ? "desc" : undefined });
  };
  return (
    <div class="table-head lease-columns" role="row" aria-rowindex={1}>
      {columns.map(([key, label]) => (
        <span key={key} role="columnheader" class={`col-${key}`}
              aria-sort={sort !== key ? "none" : is_descending ? "descending" : "ascending"}>
          <button onClick={() => choose(key)}>
            {label}
            <span class="arrow" aria-hidden="true">
              {sort === key ? (is_descending ? "↓" : "↑") : ""}
            </span>
          </button>
        </span>
      ))}
    </div>
  );
}

export function TimeLeft(props: { of: { left_ms: number; ttl_ms: number }; at: number }) {
  const left = Math.max(0, props.of.left_ms - (now.value - props.at));
  const share = props.of.ttl_ms > 0 ? left / props.of.ttl_ms : 0;
  return (
    <span class={`left ${share < 0.25 ? "is-short" : share < 0.5 ? "is-low" : ""}`}>
      <span class="left-bar"><span style={{ transform: `scaleX(${share.toFixed(3)})` }} /></span>
      <span class="number">{duration(left)}</span>
      <span class="quiet hide-narrow">of {duration(props.of.ttl_ms)}</span>
    </span>
  );
}

function Cells(props: { row: LeaseRow }) {
  const { row } = props;
  return (
    <div class="cells lease-columns" role="presentation">
      <span role="cell" class="col-client">
        <a class="owner" href={lease_link(row.lease)}>
          <span class="dot" style={{ "--hue": String(hue(row.client || row.lease)) }} />
          <span>{visible(row.client) || "unnamed client"}</span>
        </a>
        <User of={row} />
        <span class="quiet hide-narrow">{row.address}</span>
      </span>
      <span role="cell" class="col-id mono" title={row.lease}>{short_id(row.lease)}</span>
      <span role="cell" class="col-left"><TimeLeft of={row} at={row.at} /></span>
      <span role="cell" class="col-holds number">
        {row.hold_count > 0 && count(row.hold_count)}
      </span>
      <span role="cell" class="col-waits number">
        {row.wait_count > 0 && <span class="waiters">{count(row.wait_count)}</span>}
      </span>
    </div>
  );
}
