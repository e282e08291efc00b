// Force-release of a lock: shown to users with permission, after a confirmation dialog.

import { useState } from "preact/hooks";

import { api, Problem, problem_of, type PlaceName } from "../api/client";
import type { Hold } from "../api/types";
import { owner_of, visible } from "../model/format";
import { may_force } from "../model/rights";
import { rights, status } from "../model/server";
import { ActionButton, Guarded } from "./action";
import { Dialog } from "./dialog";
import { what_to_do } from "./states";

export function ForceButton(props: { name: string; on_ask: () => void }) {
  return <ActionButton icon="unlock" label="Force release" on_ask={props.on_ask}
                       permission={may_force(rights.value, status.value, props.name)} />;
}

interface DialogProps {
  place: PlaceName;
  hold: Hold;
  on_done: () => void;
  on_close: () => void;
}

export function ForceDialog(props: DialogProps) {
  return (
    <Guarded permission={may_force(rights.value, status.value, props.place.name)}
             on_close={props.on_close}>
      <ConfirmDialog {...props} />
    </Guarded>
  );
}

/// Stays open when the holder changes, and then shows the server's conflict (409).
function ConfirmDialog(props: DialogProps) {
  const [typed, set_typed] = useState("");
  const [reason, set_reason] = useState("");
  const [is_asking, set_asking] = useState(false);
  const [problem, set_problem] = useState<Problem>();
  const { hold, place } = props;
  const is_confirmed = typed.trim() === hold.token;
  const force_release = async (event: Event) => {
    event.preventDefault();
    if (!is_confirmed || is_asking) {
      return;
    }
    set_asking(true);
    try {
      await api.force_release(place, hold.token, reason.trim());
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
    <Dialog label="Force release" on_close={props.on_close}>
      <form onSubmit={force_release}>
        <h2>Force-release this lock?</h2>
        <p>
          <strong>{owner_of(hold)}</strong>{hold.user && ` (user ${visible(hold.user)})`} holds{" "}
          <strong class="mono break">{visible(place.name)}</strong>. The server notifies the holder,
          but the holder may still be working: its later writes are rejected only by storage that
          checks the fencing token.
        </p>
        <label class="field">
          <span>Type the token <strong class="mono">{hold.token}</strong> to confirm</span>
          <input class="input mono" value={typed} autoFocus autoComplete="off" inputMode="numeric"
                 onInput={(event) => set_typed(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Reason, recorded in the server log and the event (optional)</span>
          <input class="input" value={reason} autoComplete="off" maxLength={200}
                 onInput={(event) => set_reason(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="error" role="alert">
            {problem.status === 409 ? "The lock is no longer held with this token."
              : problem.detail}
            {problem.status !== 409 && <> {what_to_do(problem)}</>}
          </p>
        )}
        <div class="dialog-buttons">
          {!is_confirmed && <span class="why-not" id="force-why">
            {typed.trim() === "" ? "The token is required." : "This is not the token."}</span>}
          <button type="button" class="button" onClick={props.on_close}>Cancel</button>
          <button type="submit" class="button is-danger is-solid" aria-describedby="force-why"
                  disabled={!is_confirmed || is_asking}>
            Release
          </button>
        </div>
      </form>
    </Dialog>
  );
}
