// Placeholders for empty, loading and failed views.

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

/// An error and its remedy.
export function Trouble(props: { problem: Problem; again?: () => void }) {
  const { problem } = props;
  return (
    <div class="empty is-trouble" role="alert">
      <div class="empty-icon"><Icon name="alert" /></div>
      <h2>{problem.is_unreachable ? "tenured does not respond" : problem.title}</h2>
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
      return "Check that it is running at this address. The page retries automatically.";
    case 401:
      return "You are not logged in, or the login has expired. Log in.";
    case 403:
      return "Permission denied. The file of users (auth.file) defines the permissions; without " +
        "users, listen.http_force and the secret in the data directory do.";
    case 421:
      return "The host name of this address is not allowed: add it to listen.http_hosts.";
    case 503:
      return "This member is unavailable: it is starting, or it cannot reach the leader. " +
        "The page retries automatically; the cluster view shows the leader.";
    default:
      return "The server rejected the request.";
  }
}
