// All locks: search, filters, folders, sort, live updates.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { now } from "../model/clock";
import { folders_of, parents_of, type Folder } from "../model/folders";
import { count, duration, plural, rate, visible } from "../model/format";
import { heat_of, lock_table, locks_max, type Row } from "../model/locks";
import { selection } from "../model/query";
import { status } from "../model/server";
import { arrange, begins_descending, type Selection, type SortKey } from "../model/sorting";
import { Copied, ModeBadge, Name, Owner, User } from "../parts/bits";
import { Icon } from "../parts/icon";
import { LockTools, show_all } from "../parts/lock_tools";
import { use_narrow } from "../parts/narrow";
import { Empty, Loading, Trouble } from "../parts/states";
import { VirtualList } from "../parts/virtual_list";
import { lock_link, set_query, with_query } from "../router";

const is_paused = signal(false);

const columns: [SortKey, string][] = [["name", "Name"], ["holders", "Holder"],
  ["since", "Held for"], ["waiters", "Waiting"], ["heat", "Grants/s"]];

type Item = { folder: Folder } | { row: Row };

export function Locks() {
  useEffect(() => lock_table.use(), []);
  const { rows, total } = use_arranged();
  const state = lock_table.state.value;
  if (state === "failed" && lock_table.rows.size === 0) {
    return <Trouble problem={lock_table.problem.value!} again={() => void lock_table.load()} />;
  }
  const is_loading = state === "loading" && lock_table.rows.size === 0;
  return (
    <>
      <h1 class="hidden">Locks</h1>
      <LockTools note={is_loading ? "" : note_of(rows.length, total)} is_paused={is_paused} />
      {is_loading
        ? <Loading what={lock_table.loaded.value > 0
            ? `${plural(lock_table.loaded.value, "lock")} read…` : "Reading the locks…"} />
        : rows.length === 0 ? <Nothing /> : <LockList rows={rows} />}
    </>
  );
}

function note_of(shown: number, total: number): string {
  const cut = lock_table.is_cut.value ? `, the first ${count(locks_max)} by name` : "";
  const polled = lock_table.is_polled.value
    ? ", updated every few seconds: too many events" : "";
  const selected = selection.value.filter === "hot" ? plural(shown, "hot lock")
    : shown === total ? plural(shown, "lock") : `${count(shown)} of ${plural(total, "lock")}`;
  return selected + cut + polled;
}

function LockList(props: { rows: Row[] }) {
  const { rows } = props;
  const { folder, search } = selection.value;
  const is_narrow = use_narrow();
  // A search shows its matches in all folders below this one.
  const has_folders = folder !== undefined && search.trim() === "";
  const items = useMemo((): Item[] => {
    if (!has_folders) {
      return rows.map((row) => ({ row }));
    }
    const found = folders_of(rows, folder);
    return [...found.folders.map((one) => ({ folder: one })),
      ...found.rows.map((row) => ({ row }))];
  }, [rows, folder, has_folders]);
  return (
    <>
      {folder !== undefined && <Breadcrumbs folder={folder} />}
      <VirtualList items={items} label="Locks" row_height={is_narrow ? 72 : 48} columns={5}
        key_of={(item) => ("folder" in item ? `folder ${item.folder.path}` : item.row.key)}
        link_of={(item) => ("folder" in item ? folder_link(item.folder.path) : lock_link(item.row))}
        head={<Head />}
        render={(item) => ("folder" in item ? <FolderCells folder={item.folder} />
          : <Cells row={item.row} />)}
        row_class={(item) => ("row" in item && item.row.waiters > 0 ? "is-wanted" : "")}
        on_visible={(visible_items) => void lock_table.refresh(visible_items
          .flatMap((item) => ("row" in item ? [item.row.key] : [])))} />
    </>
  );
}

const folder_link = (path: string) =>
  with_query(location.hash, { view: "folders", in: path });

function Breadcrumbs(props: { folder: string }) {
  return (
    <nav class="breadcrumbs" aria-label="Folders">
      <a href={folder_link("")} aria-current={props.folder === "" ? "location" : undefined}>
        <Icon name="folder" />All locks</a>
      {parents_of(props.folder).map(({ path, title }) => (
        <a key={path} href={folder_link(path)} class="mono"
           aria-current={path === props.folder ? "location" : undefined}>{visible(title)}</a>
      ))}
    </nav>
  );
}

interface Arranged {
  rows: Row[];
  total: number;
  selected: Selection;
  version: number;
  at: number;
}

function arrange_now(selected: Selection, version: number): Arranged {
  const at = performance.now();
  const candidates = selected.filter === "hot"
    ? [...lock_table.rows.values(), ...lock_table.warm.values()] : lock_table.rows.values();
  return { rows: arrange(candidates, selected, at, lock_table.watched_since),
    total: lock_table.rows.size, selected, version, at };
}

/// Rows in display order. A new selection is arranged at once, in the same frame; changes of the
/// locks at most every 250 ms (1 s for long lists) for readability.
function use_arranged(): Arranged {
  const kept = useRef<Arranged>(undefined);
  const [, redraw] = useState(0);
  const version = lock_table.version.value;
  const selected = selection.value;
  const paused = is_paused.value;
  const before = kept.current;
  const pause = lock_table.rows.size > 5_000 ? 1_000 : 250;
  const left = before ? before.at + pause - performance.now() : 0;
  const is_first = !before || (before.total === 0 && lock_table.rows.size > 0);
  const is_changed = before?.version !== version;
  if (is_first || before.selected !== selected || (is_changed && !paused && left <= 0)) {
    kept.current = arrange_now(selected, version);
  }
  const is_outdated = !paused && kept.current!.version !== version;
  useEffect(() => {
    if (!is_outdated) {
      return undefined;
    }
    const timer = setTimeout(() => redraw((n) => n + 1), Math.max(0, left));
    return () => clearTimeout(timer);
  }, [is_outdated, version]);
  return kept.current!;
}

function Head() {
  const { sort, is_descending } = selection.value;
  const choose = (next: SortKey) => {
    const descends = next === sort ? !is_descending : begins_descending(next);
    set_query({ sort: next === "name" ? undefined : next, order: descends ? "desc" : undefined });
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

function FolderCells(props: { folder: Folder }) {
  const { folder } = props;
  return (
    <div class="cells lock-columns is-folder" role="presentation">
      <span role="cell" class="col-name">
        <a href={folder_link(folder.path)}><Icon name="folder" />
          <span class="name" title={visible(folder.path)}>{visible(folder.title)}</span></a>
      </span>
      <span role="cell" class="col-holders quiet">{plural(folder.locks, "lock")}</span>
      <span role="cell" class="col-since" />
      <span role="cell" class="col-waiters number">
        {folder.waiters > 0 && <span class="waiters">{count(folder.waiters)}</span>}
      </span>
      <span role="cell" class="col-heat" />
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
          ? <><ModeBadge of={{ mode: row.mode }} /><Owner of={row} /><User of={row} />
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
        <p>{selection.value.filter === "hot" ? "No lock was granted in the last 30 seconds."
          : "Search for a part of a name or an owner, or show all locks."}</p>
        <button class="button" onClick={show_all}>Show all locks</button>
      </Empty>
    );
  }
  const command = `tenure run${url_option()} db/users -- sleep 60`;
  return (
    <Empty icon="unlock" title="No locks">
      <p>No lock is held or waited for. Run a command that holds one to see it here:</p>
      <div class="command"><code>{command}</code><Copied text={command} what="command" /></div>
    </Empty>
  );
}

/// `tenure` finds a server on its default port by itself.
function url_option(): string {
  const address = status.value?.log.leader_address ?? "";
  return address === "" || address === "127.0.0.1:7420" ? "" : ` --url tenure://${address}`;
}
