// Folders of the lock list: names with a common prefix up to the next slash.

import type { Row } from "./locks";

export interface Folder {
  path: string; ///< Prefix of its names, with the final slash.
  title: string; ///< The last part of the path.
  locks: number;
  waiters: number;
}

export interface Listing {
  folders: Folder[]; ///< By title.
  rows: Row[]; ///< Locks directly in the folder, in the order of the input.
}

/// REQUIRES: every name starts with `inside`. Names in base64 have no folders.
export function folders_of(rows: readonly Row[], inside: string): Listing {
  const folders = new Map<string, Folder>();
  const direct: Row[] = [];
  for (const row of rows) {
    const slash = row.is_base64 ? -1 : row.name.indexOf("/", inside.length);
    if (slash < 0) {
      direct.push(row);
      continue;
    }
    const path = row.name.slice(0, slash + 1);
    let folder = folders.get(path);
    if (!folder) {
      folder = { path, title: path.slice(inside.length), locks: 0, waiters: 0 };
      folders.set(path, folder);
    }
    folder.locks += 1;
    folder.waiters += row.waiters;
  }
  const sorted = [...folders.values()].sort((left, right) => (left.path < right.path ? -1 : 1));
  return { folders: sorted, rows: direct };
}

/// The folder and those that contain it, outermost first: "a/b/" is in "a/".
export function parents_of(path: string): { path: string; title: string }[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((title, i) => ({ title: `${title}/`,
    path: `${parts.slice(0, i + 1).join("/")}/` }));
}
