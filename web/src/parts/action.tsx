// Buttons for changes, with the reason next to a disabled one, and the dialogs in front of them.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { api, Problem, problem_of } from "../api/client";
import type { Permission } from "../model/rights";
import { rights } from "../model/server";
import { Dialog } from "./dialog";
import { Icon, type IconName } from "./icon";
import { SecretDialog } from "./secret_dialog";
import { what_to_do } from "./states";

interface ActionButtonProps {
  permission: Permission;
  icon: IconName;
  label: string;
  is_danger?: boolean; ///< True unless given.
  on_ask: () => void;
}

/// Nothing if the action is not offered to this user.
export function ActionButton(props: ActionButtonProps) {
  const id = useId();
  const { is_shown, is_allowed, why_not } = props.permission;
  if (!is_shown) {
    return null;
  }
  return (
    <span class="action">
      <button class={`button ${props.is_danger ?? true ? "is-danger" : ""}`} disabled={!is_allowed}
              title={why_not || undefined} aria-describedby={is_allowed ? undefined : id}
              onClick={props.on_ask}>
        <Icon name={props.icon} /> {props.label}
      </button>
      {!is_allowed && <span class="why-not" id={id}>{why_not}</span>}
    </span>
  );
}

/// Asks for the secret of the server first, if the action needs it and the user has not given it.
export function Guarded(props: { permission: Permission; on_close: () => void;
                                 children: ComponentChildren }) {
  return props.permission.needs_secret ? <SecretDialog on_close={props.on_close} />
    : <>{props.children}</>;
}

interface ConfirmProps {
  title: string;
  button: string;
  is_danger?: boolean;
  children: ComponentChildren;
  /// Executes the action; its errors are shown in the dialog.
  run: () => Promise<unknown>;
  on_done: () => void;
  on_close: () => void;
}

/// Dialog that executes an action, and stays open if it fails.
export function ConfirmDialog(props: ConfirmProps) {
  const [is_asking, set_asking] = useState(false);
  const [problem, set_problem] = useState<Problem>();
  const run = async (event: Event) => {
    event.preventDefault();
    if (is_asking) {
      return;
    }
    set_asking(true);
    set_problem(undefined);
    try {
      await props.run();
      props.on_close();
      props.on_done();
    } catch (error) {
      const found = problem_of(error);
      set_problem(found);
      set_asking(false);
      if (found.status === 403) {
        // The login may have expired: reload the permissions, so that the secret dialog opens.
        rights.value = await api.rights().catch(() => rights.value);
      }
    }
  };
  return (
    <Dialog label={props.title} on_close={props.on_close}>
      <form onSubmit={run}>
        <h2>{props.title}</h2>
        {props.children}
        {problem && <p class="error" role="alert">{problem.detail || what_to_do(problem)}</p>}
        <div class="dialog-buttons">
          {is_asking && <span class="why-not" role="status">Waiting for the server…</span>}
          <button type="button" class="button" onClick={props.on_close}>Cancel</button>
          <button type="submit" disabled={is_asking}
                  class={`button ${props.is_danger ? "is-danger is-solid" : "is-primary"}`}>
            {props.button}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
