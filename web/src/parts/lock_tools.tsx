// Search, filters and view of the lock list. Their state is in the URL.

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { mode_name } from "../model/format";
import { ages, filters, modes, selection } from "../model/query";
import type { Filter } from "../model/sorting";
import { query, set_query, type Changes } from "../router";
import { Icon } from "./icon";

const labels: Record<Filter, string> =
  { all: "All", held: "Held", waiting: "Waiting", hot: "Hot" };
/// Parameters of the panel of further filters.
const panel = ["owner", "mode", "age", "metadata"];

/// Hot and waiting locks are sorted by what the filter is about.
const changes_of: Record<Filter, Changes> = {
  all: { filter: undefined },
  held: { filter: "held" },
  waiting: { filter: "waiting", sort: "waiters", order: "desc" },
  hot: { filter: "hot", sort: "heat", order: "desc" },
};

export function show_all(): void {
  set_query({ q: undefined, filter: undefined, ...nothing_in_panel() });
}

function nothing_in_panel(): Changes {
  return Object.fromEntries(panel.map((name) => [name, undefined]));
}

export function LockTools(props: { note: string; is_paused: Signal<boolean> }) {
  const { is_paused } = props;
  const active = panel.filter((name) => query.value.get(name)).length;
  const [is_open, set_open] = useState(active > 0);
  const has_folders = selection.value.folder !== undefined;
  return (
    <>
      <div class="tools">
        <Search />
        <div class="chips" role="group" aria-label="Filter locks">
          {filters.map((filter) => (
            <button key={filter} class="chip" aria-pressed={selection.value.filter === filter}
                    onClick={() => set_query(changes_of[filter])}>
              {labels[filter]}
            </button>
          ))}
        </div>
        <button class="button is-quiet" aria-expanded={is_open}
                onClick={() => set_open(!is_open)}>
          <Icon name="filter" />Filters{active > 0 && <span class="badge">{active}</span>}
        </button>
        <button class="button is-quiet" aria-pressed={has_folders}
                onClick={() => set_query({ view: has_folders ? undefined : "folders",
                  in: undefined })}>
          <Icon name="folder" />Folders
        </button>
        <span class="tools-note" role="status" data-testid="shown">{props.note}</span>
        <button class="button is-quiet" aria-pressed={is_paused.value}
                onClick={() => (is_paused.value = !is_paused.value)}>
          <Icon name={is_paused.value ? "play" : "pause"} />
          {is_paused.value ? "Paused" : "Live"}
        </button>
      </div>
      {is_open && <Filters active={active} />}
    </>
  );
}

function Search() {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const on_key = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const is_typing = ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName);
      if (event.key === "/" && !is_typing && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        search.current?.focus();
      }
    };
    addEventListener("keydown", on_key);
    return () => removeEventListener("keydown", on_key);
  }, []);
  return (
    <label class="search">
      <Icon name="search" />
      <input ref={search} type="search" placeholder="Search names and owners" spellcheck={false}
             aria-label="Search names and owners" aria-keyshortcuts="/"
             value={selection.value.search}
             onInput={(event) => set_query({ q: event.currentTarget.value })} />
      <kbd>/</kbd>
    </label>
  );
}

function Filters(props: { active: number }) {
  const text = (name: string, label: string) => (
    <Labelled label={label}>
      <input class="input" value={query.value.get(name) ?? ""} spellcheck={false}
             autoComplete="off"
             onInput={(event) => set_query({ [name]: event.currentTarget.value })} />
    </Labelled>
  );
  const select = (name: string, label: string, options: [string, string][]) => (
    <Labelled label={label}>
      <select class="input" value={query.value.get(name) ?? ""}
              onChange={(event) => set_query({ [name]: event.currentTarget.value })}>
        <option value="">any</option>
        {options.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
      </select>
    </Labelled>
  );
  return (
    <div class="filters card" role="group" aria-label="More filters">
      {text("owner", "Owner or user")}
      {select("mode", "Mode", modes.map((mode) =>
        [mode, mode === "permits" ? "semaphore permits" : `${mode}: ${mode_name(mode)}`]))}
      {select("age", "Held for at least", Object.keys(ages).map((age) =>
        [age, age.replace(/(\d+)(\w)/, "$1 $2")]))}
      {text("metadata", "Metadata")}
      <button class="button" hidden={props.active === 0}
              onClick={() => set_query(nothing_in_panel())}>Clear</button>
    </div>
  );
}

function Labelled(props: { label: string; children: ComponentChildren }) {
  return <label class="field"><span>{props.label}</span>{props.children}</label>;
}
