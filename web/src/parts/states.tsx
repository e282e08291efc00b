// What is shown when there is nothing to show.

import type { ComponentChildren } from "preact";

import type { Problem } from "../api/client";
import { Icon, type IconName } from "./icon";

export function Empty(props: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <div class="empty-icon"><Icon name={props.icon} /></div>
      <h2>{props.title}</h2>
      <div class="empty-text">{props.children}</div>
    </div>
  );
}

export function Loading(props: { what: string }) {
  return (
    <div class="empty" role="status">
      <div class="spinner" aria-hidden="true" />
      <p class="empty-text">{props.what}</p>
    </div>
  );
}

/// What went wrong, and what one can do about it.
export function Trouble(props: { problem: Problem; again?: () => void }) {
  const { problem } = props;
  return (
    <div class="empty is-trouble" role="alert">
      <div class="empty-icon"><Icon name="alert" /></div>
      <h2>{problem.is_unreachable ? "tenured does not answer" : problem.title}</h2>
      <div class="empty-text">
        <p>{what_to_do(problem)}</p>
        {problem.status > 0 && problem.detail && <p class="quiet">{problem.detail}</p>}
        {props.again && <button class="button" onClick={props.again}>Try again</button>}
      </div>
    </div>
  );
}

export function what_to_do(problem: Problem): string {
  switch (problem.status) {
    case 0:
      return "Is it running, and is this still its address? This page tries again by itself.";
    case 401:
      return "The server does not know you, or not any more: log in.";
    case 403:
      return "The server refuses this. Its file of users (auth.file) has the rights; without " +
        "users, listen.http_force and the secret in its data directory decide.";
    case 421:
      return "The server does not know the name by which you ask: add it to listen.http_hosts.";
    case 503:
      return "This member cannot answer now: it may follow a leader that is away, or be " +
        "starting. This page tries again by itself; the cluster view says who leads.";
    default:
      return "The server refused the request.";
  }
}
