// Filter and sort order of the lock table.

import { heat_of, type Row } from "./locks";

export type Filter = "all" | "held" | "waiting" | "hot";
export type SortKey = "name" | "holders" | "waiters" | "since" | "heat";

export interface Order {
  search: string;
  filter: Filter;
  sort: SortKey;
  is_descending: boolean;
}

/// Default direction of a column: largest first, names from A to Z.
export function begins_descending(sort: SortKey): boolean {
  return sort !== "name";
}

/// Ties are ordered by name, so that rows keep their position.
export function arrange(rows: Iterable<Row>, order: Order, now: number,
                        watched_since?: number): Row[] {
  const search = order.search.trim().toLowerCase();
  const shown: Row[] = [];
  const heat = (row: Row) => heat_of(row, now, watched_since);
  for (const row of rows) {
    if (search && !row.name.toLowerCase().includes(search) &&
        !row.owner.toLowerCase().includes(search)) {
      continue;
    }
    if (is_wanted(row, order.filter, heat(row))) {
      shown.push(row);
    }
  }
  const sign = order.is_descending ? -1 : 1;
  const value = value_of(order.sort, now, heat);
  return shown.sort((left, right) => {
    const difference = value ? value(left) - value(right) : 0;
    if (difference !== 0) {
      return sign * difference;
    }
    const by_name = left.key < right.key ? -1 : left.key > right.key ? 1 : 0;
    return value ? by_name : sign * by_name;
  });
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
