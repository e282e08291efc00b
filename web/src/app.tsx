// The frame around every view: navigation, server state, login, colour theme.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { api } from "./api/client";
import { count, visible } from "./model/format";
import { is_locked_out } from "./model/rights";
import { problem, rights, status } from "./model/server";
import { Icon, type IconName } from "./parts/icon";
import { Empty, what_to_do } from "./parts/states";
import { route, type Route } from "./router";
import { theme, type Theme } from "./theme";
import { ClusterView } from "./views/cluster";
import { LeaseView } from "./views/lease";
import { Leases } from "./views/leases";
import { LockView } from "./views/lock";
import { Locks } from "./views/locks";
import { Login } from "./views/login";
import { Overview } from "./views/overview";
import { Waits } from "./views/waits";

const sections: { href: string; label: string; icon: IconName; views: Route["view"][] }[] = [
  { href: "#/", label: "Overview", icon: "overview", views: ["overview"] },
  { href: "#/locks", label: "Locks", icon: "lock", views: ["locks", "lock"] },
  { href: "#/leases", label: "Leases", icon: "lease", views: ["leases", "lease"] },
  { href: "#/waits", label: "Waits", icon: "graph", views: ["waits"] },
  { href: "#/cluster", label: "Cluster", icon: "cluster", views: ["cluster"] },
];

export function App() {
  const here = route.value;
  useEffect(() => {
    document.title = `${title_of(here)} · Tenure`;
  }, [here]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>Skip to content</a>
      <header class="top">
        <div class="top-inside">
          <a class="brand" href="#/"><Logo />Tenure</a>
          <nav aria-label="Views">
            {sections.map((section) => (
              <a key={section.href} href={section.href}
                 aria-current={section.views.includes(here.view) ? "page" : undefined}>
                <Icon name={section.icon} /><span>{section.label}</span>{badge_of(section.href)}
              </a>
            ))}
          </nav>
          <div class="top-end"><Health /><Access /><ThemeButton /></div>
        </div>
      </header>
      <Banner />
      <main id="main" tabIndex={-1}>
        {is_locked_out(rights.value) ? <Login /> : <View of={here} />}
      </main>
    </>
  );
}

function View(props: { of: Route }): ComponentChildren {
  switch (props.of.view) {
    case "overview": return <Overview />;
    case "locks": return <Locks />;
    case "lock": return <LockView place={props.of.place} />;
    case "leases": return <Leases />;
    case "lease": return <LeaseView id={props.of.id} />;
    case "waits": return <Waits />;
    case "cluster": return <ClusterView />;
    case "unknown": return (
      <Empty icon="search" title="Page not found"><a class="button" href="#/">Overview</a></Empty>
    );
  }
}

function title_of(here: Route): string {
  switch (here.view) {
    case "lock": return visible(here.place.name);
    case "lease": return `Lease ${visible(here.id)}`;
    default: return sections.find((section) => section.views.includes(here.view))?.label ??
      "Page not found";
  }
}

function badge_of(href: string) {
  const waits = status.value?.counts.waits ?? 0;
  return href === "#/waits" && waits > 0 ? <span class="badge">{count(waits)}</span> : null;
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="9" />
      <path d="M10.500 15v-3a5.500 5.500 0 0 1 11 0v3" />
      <rect class="logo-body" x="7.500" y="14.500" width="17" height="11.500" rx="3" />
    </svg>
  );
}

function Health() {
  const here = status.value;
  if (problem.value) {
    return <span class="health is-bad" role="status"><span />offline</span>;
  }
  if (!here) {
    return <span class="health" role="status"><span />…</span>;
  }
  const leads = here.role === "leader";
  const has_leader = leads || here.log.leader !== "0";
  const who = visible(here.name) || `member ${here.member}`;
  return (
    <a href="#/cluster" class={`health ${has_leader ? "is-good" : "is-bad"}`}
       title={`tenured ${here.version}`}>
      <span /><i><b>{who} </b>{leads ? "leader" : has_leader ? "follower" : "no leader"}</i>
    </a>
  );
}

/// Name of the logged-in user, or the access level of this page.
function Access() {
  const mine = rights.value;
  if (!mine || is_locked_out(mine)) {
    return null;
  }
  if (mine.has_users) {
    const log_out = async () => {
      await api.logout().catch(() => {});
      location.reload();
    };
    return (
      <span class="access" title={mine.force_reason}>
        <Icon name="user" /><span>{visible(mine.user)}</span>
        <button class="button is-quiet" onClick={log_out}>Log out</button>
      </span>
    );
  }
  return (
    <span class="access" title={mine.force_reason}>
      <Icon name="user" /><span>{mine.may_force ? "operator" : "reader"}</span>
    </span>
  );
}

function ThemeButton() {
  const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
  const icons: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };
  const label = `Colour theme: ${theme.value}; switch to ${next[theme.value]}`;
  return (
    <button class="theme" aria-label={label} title={label}
            onClick={() => (theme.value = next[theme.value])}>
      <Icon name={icons[theme.value]} />
    </button>
  );
}

/// Shown above every view while the server is unreachable or the cluster has no leader.
function Banner() {
  const here = status.value;
  if (problem.value) {
    return (
      <div class="banner" role="alert">
        <Icon name="alert" />
        <span><strong>{problem.value.is_unreachable ? "tenured does not respond."
          : `${problem.value.title}.`}</strong> {what_to_do(problem.value)}</span>
      </div>
    );
  }
  if (here && here.role !== "leader" && here.log.leader === "0") {
    return (
      <div class="banner" role="alert">
        <Icon name="alert" />
        <span><strong>The cluster has no leader.</strong> No lock is granted until a majority of
          the members is running and elects one. <a href="#/cluster">Members</a></span>
      </div>
    );
  }
  return null;
}
