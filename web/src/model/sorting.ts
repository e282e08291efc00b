// Filters and sort order of the lock table.

import { heat_of, type Row } from "./locks";

export type Filter = "all" | "held" | "waiting" | "hot";
export type SortKey = "name" | "holders" | "waiters" | "since" | "heat";

export interface Selection {
  search: string; ///< Part of a name, an owner or a user.
  filter: Filter;
  sort: SortKey;
  is_descending: boolean;
  owner: string; ///< Part of an owner or user; empty: any.
  mode: string; ///< Mode of the holder, or "permits"; empty: any.
  age_ms: number; ///< Minimum time for which the lock is held.
  metadata: string; ///< Part of the metadata of the holder; empty: any.
  folder: string | undefined; ///< Prefix of the shown folder; undefined: a list without folders.
}

export const default_selection: Selection = { search: "", filter: "all", sort: "name",
  is_descending: false, owner: "", mode: "", age_ms: 0, metadata: "", folder: undefined };

/// Default direction of a column: largest first, names from A to Z.
export function begins_descending(sort: SortKey): boolean {
  return sort !== "name";
}

/// Ties are ordered by name, so that rows keep their position.
export function arrange(rows: Iterable<Row>, wanted: Selection, now: number,
                        watched_since?: number): Row[] {
  const heat = (row: Row) => heat_of(row, now, watched_since);
  const is_selected = selector_of(wanted, now);
  const shown: Row[] = [];
  for (const row of rows) {
    if (is_selected(row) && is_wanted(row, wanted.filter, heat(row))) {
      shown.push(row);
    }
  }
  const sign = wanted.is_descending ? -1 : 1;
  const value = value_of(wanted.sort, now, heat);
  return shown.sort((left, right) => {
    const difference = value ? value(left) - value(right) : 0;
    if (difference !== 0) {
      return sign * difference;
    }
    const by_name = left.key < right.key ? -1 : left.key > right.key ? 1 : 0;
    return value ? by_name : sign * by_name;
  });
}

/// Predicate for everything but the chip that is pressed.
function selector_of(wanted: Selection, now: number): (row: Row) => boolean {
  const search = wanted.search.trim().toLowerCase();
  const owner = wanted.owner.trim().toLowerCase();
  const metadata = wanted.metadata.trim().toLowerCase();
  const has = (text: string, part: string) => text.toLowerCase().includes(part);
  const is_by = (row: Row, part: string) => has(row.owner, part) || has(row.user, part);
  return (row) =>
    (!search || has(row.name, search) || is_by(row, search)) &&
    (!owner || (row.holders > 0 && is_by(row, owner))) &&
    (!wanted.mode || (row.holders > 0 && row.mode === wanted.mode)) &&
    (!wanted.age_ms || (row.holders > 0 && now - row.since >= wanted.age_ms)) &&
    (!metadata || (row.holders > 0 && has(row.metadata, metadata))) &&
    (!wanted.folder || row.name.startsWith(wanted.folder));
}

function is_wanted(row: Row, filter: Filter, heat: number): boolean {
  switch (filter) {
    case "all": return true;
    case "held": return row.holders > 0;
    case "waiting": return row.waiters > 0;
    case "hot": return heat >= 0.05;
  }
}

function value_of(sort: SortKey, now: number, heat: (row: Row) => number):
    ((row: Row) => number) | undefined {
  switch (sort) {
    case "name": return undefined;
    case "holders": return (row) => row.holders;
    case "waiters": return (row) => row.waiters;
    case "since": return (row) => (row.holders > 0 ? now - row.since : -1);
    case "heat": return heat;
  }
}
