// All locks: search, filter, sort, live updates.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { now } from "../model/clock";
import { count, duration, plural, rate } from "../model/format";
import { heat_of, lock_table, locks_max, type Row } from "../model/locks";
import { arrange, begins_descending, type Filter, type Order, type SortKey } from
  "../model/sorting";
import { ModeBadge, Name, Owner } from "../parts/bits";
import { Icon } from "../parts/icon";
import { Empty, Loading, Trouble } from "../parts/states";
import { VirtualList } from "../parts/virtual_list";
import { lock_link } from "../router";
import { use_narrow } from "../parts/narrow";

// Module state, so that search and order survive a visit of a lock's page.
const order = signal<Order>({ search: "", filter: "all", sort: "name", is_descending: false });
const is_paused = signal(false);

const filters: [Filter, string][] =
  [["all", "All"], ["held", "Held"], ["waiting", "Waiting"], ["hot", "Hot"]];
const columns: [SortKey, string][] = [["name", "Name"], ["holders", "Holder"],
  ["since", "Held for"], ["waiters", "Waiting"], ["heat", "Grants/s"]];

export function Locks() {
  useEffect(() => lock_table.use(), []);
  const is_narrow = use_narrow();
  const { rows, total } = use_arranged();
  const state = lock_table.state.value;
  if (state === "failed" && lock_table.rows.size === 0) {
    return <Trouble problem={lock_table.problem.value!} again={() => void lock_table.load()} />;
  }
  return (
    <>
      <h1 class="hidden">Locks</h1>
      <Tools shown={rows.length} total={total} />
      {state === "loading" && lock_table.rows.size === 0
        ? <Loading what={lock_table.loaded.value > 0
            ? `${count(lock_table.loaded.value)} locks read…` : "Reading the locks…"} />
        : rows.length === 0 ? <Nothing />
        : <VirtualList items={rows} label="Locks" row_height={is_narrow ? 72 : 48}
            key_of={(row) => row.key} link_of={(row) => lock_link(row)} columns={5}
            head={<Head />} render={(row) => <Cells row={row} />}
            row_class={(row) => (row.waiters > 0 ? "is-wanted" : "")}
            on_visible={(visible) => void lock_table.refresh(visible.map((row) => row.key))} />}
    </>
  );
}

/// Rows in display order, sorted again at most every 250 ms (1 s for long lists) for readability.
function use_arranged(): { rows: Row[]; total: number } {
  const shown = useSignal<{ rows: Row[]; total: number }>({ rows: [], total: 0 });
  const last = useRef({ at: 0, order: order.value });
  const version = lock_table.version.value;
  const wanted = order.value;
  const paused = is_paused.value;
  useEffect(() => {
    const arrange_now = () => {
      last.current = { at: performance.now(), order: wanted };
      const candidates = wanted.filter === "hot"
        ? [...lock_table.rows.values(), ...lock_table.warm.values()] : lock_table.rows.values();
      shown.value = { rows: arrange(candidates, wanted, performance.now(),
          lock_table.watched_since),
        total: lock_table.rows.size };
    };
    const is_new_order = last.current.order !== wanted || last.current.at === 0;
    if (paused && !is_new_order) {
      return undefined;
    }
    const pause = lock_table.rows.size > 5_000 ? 1_000 : 250;
    const left = is_new_order ? 0 : last.current.at + pause - performance.now();
    if (left <= 0) {
      arrange_now();
      return undefined;
    }
    const timer = setTimeout(arrange_now, left);
    return () => clearTimeout(timer);
  }, [version, wanted, paused]);
  return shown.value;
}

function Tools(props: { shown: number; total: number }) {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const on_key = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key === "/" && target.tagName !== "INPUT" && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        search.current?.focus();
      }
    };
    addEventListener("keydown", on_key);
    return () => removeEventListener("keydown", on_key);
  }, []);
  const set = (change: Partial<Order>) => (order.value = { ...order.value, ...change });
  return (
    <div class="tools">
      <label class="search">
        <Icon name="search" />
        <input ref={search} type="search" placeholder="Search names and owners" spellcheck={false}
               aria-label="Search names and owners" aria-keyshortcuts="/" value={order.value.search}
               onInput={(event) => set({ search: event.currentTarget.value })} />
        <kbd>/</kbd>
      </label>
      <div class="chips" role="group" aria-label="Filter locks">
        {filters.map(([filter, label]) => (
          <button key={filter} class="chip" aria-pressed={order.value.filter === filter}
                  onClick={() => set(filter === "hot"
                    ? { filter, sort: "heat", is_descending: true }
                    : filter === "waiting" ? { filter, sort: "waiters", is_descending: true }
                    : { filter })}>
            {label}
          </button>
        ))}
      </div>
      <span class="tools-note" role="status" data-testid="shown">
        {order.value.filter === "hot" ? plural(props.shown, "hot lock")
          : props.shown === props.total ? plural(props.shown, "lock")
          : `${count(props.shown)} of ${plural(props.total, "lock")}`}
        {lock_table.is_cut.value && `, the first ${count(locks_max)} by name`}
        {lock_table.is_polled.value && ", updated every few seconds: too many events"}
      </span>
      <button class="button is-quiet" aria-pressed={is_paused.value}
              onClick={() => (is_paused.value = !is_paused.value)}>
        <Icon name={is_paused.value ? "play" : "pause"} />
        {is_paused.value ? "Paused" : "Live"}
      </button>
    </div>
  );
}

function Head() {
  const { sort, is_descending } = order.value;
  const choose = (next: SortKey) => {
    order.value = { ...order.value, sort: next,
      is_descending: next === sort ? !is_descending : begins_descending(next) };
  };
  return (
    <div class="table-head lock-columns" role="row" aria-rowindex={1}>
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

function Cells(props: { row: Row }) {
  const { row } = props;
  const heat = heat_of(row, now.value, lock_table.watched_since);
  return (
    <div class="cells lock-columns" role="presentation">
      <span role="cell" class="col-name">
        <a href={lock_link(row)}><Name of={row} /></a>
        {row.kind !== "lock" && <span class="tag">{row.kind}</span>}
      </span>
      <span role="cell" class="col-holders">
        {row.holders > 0
          ? <><ModeBadge of={{ mode: row.mode }} /><Owner of={row} />
              {row.holders > 1 && <span class="quiet">+{count(row.holders - 1)}</span>}</>
          : <span class="quiet">free</span>}
      </span>
      <span role="cell" class="col-since number">
        {row.holders > 0 ? duration(Math.max(0, now.value - row.since)) : ""}
      </span>
      <span role="cell" class="col-waiters number">
        {row.waiters > 0 && <span class="waiters">{count(row.waiters)}</span>}
      </span>
      <span role="cell" class="col-heat number">
        {heat >= 0.05 && <><span class="heat"
          style={{ "--heat": String(Math.min(1, Math.log10(1 + heat * 9) / 2)) }} />{rate(heat)}</>}
      </span>
    </div>
  );
}

function Nothing() {
  if (lock_table.rows.size > 0) {
    return (
      <Empty icon="search" title="No matching locks">
        <p>{order.value.filter === "hot" ? "No lock was granted in the last 30 seconds."
          : "Search for a part of a name or an owner, or show all locks."}</p>
        <button class="button" onClick={() => (order.value = { ...order.value, search: "",
          filter: "all" })}>Show all locks</button>
      </Empty>
    );
  }
  return (
    <Empty icon="unlock" title="No locks">
      <p>No lock is held or waited for. Acquire one to see it here:</p>
      <pre class="command">/usr/bin/python3 examples/python/hold.py db/users --seconds 60</pre>
    </Empty>
  );
}
