// All leases. Renewals cause no events, so the list is polled; long lists are polled less often.

import { api } from "../api/client";
import type { Lease } from "../api/types";

export const leases_max = 20_000;

export interface LeaseRow extends Lease {
  at: number; ///< Time at which `left_ms` was read, on the clock of the page.
}

export interface LeaseList {
  rows: LeaseRow[];
  is_cut: boolean;
}

export async function read_leases(): Promise<LeaseList> {
  const rows: LeaseRow[] = [];
  let next: string | undefined;
  do {
    const page = await api.leases(next);
    const at = performance.now();
    rows.push(...page.leases.map((lease) => ({ ...lease, at })));
    next = page.next;
  } while (next && rows.length < leases_max);
  return { rows, is_cut: next !== undefined };
}

export type LeaseSort = "lease" | "client" | "left" | "holds" | "waits";

export function arrange_leases(rows: readonly LeaseRow[], search: string, sort: LeaseSort,
                               is_descending: boolean): LeaseRow[] {
  const wanted = search.trim().toLowerCase();
  const sign = is_descending ? -1 : 1;
  const value = (row: LeaseRow): number | string => {
    switch (sort) {
      case "lease": return row.lease.padStart(20, "0");
      case "client": return row.client;
      case "left": return row.left_ms + row.at;
      case "holds": return row.hold_count;
      case "waits": return row.wait_count;
    }
  };
  return rows
    .filter((row) => !wanted || row.client.toLowerCase().includes(wanted) ||
      row.user.toLowerCase().includes(wanted) ||
      row.lease.includes(wanted) || row.address.includes(wanted))
    .sort((left, right) => {
      const [a, b] = [value(left), value(right)];
      return a < b ? -sign : a > b ? sign : 0;
    });
}
