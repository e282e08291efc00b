// Taking a lock from its holder: for those who may, after a question that says what it means.

import { useState } from "preact/hooks";

import { api, Problem, problem_of, type PlaceName } from "../api/client";
import type { Hold } from "../api/types";
import { owner_of } from "../model/format";
import { may } from "../model/rights";
import { rights, status } from "../model/server";
import { Dialog } from "./dialog";
import { SecretQuestion } from "./secret_question";
import { Icon } from "./icon";
import { what_to_do } from "./states";

export function ForceButton(props: { name: string; on_ask: () => void }) {
  const mine = rights.value;
  const follows = status.value?.role === "follower";
  if (mine?.has_users && !(mine.may_force && may(mine, "admin", props.name))) {
    return null;
  }
  const is_possible = mine?.may_force || mine?.needs_secret;
  const why_not = !is_possible ? `Not allowed here: ${mine?.why ?? "asking the server"}`
    : follows ? `This member follows; ask the leader, member ${status.value?.log.leader}` : "";
  return (
    <button class="button is-danger" disabled={why_not !== ""} title={why_not || undefined}
            onClick={props.on_ask}>
      <Icon name="unlock" /> Force release
    </button>
  );
}

interface Question {
  place: PlaceName;
  hold: Hold;
  on_done: () => void;
  on_close: () => void;
}

/// Asks for the secret of the server first, where that is needed and not known yet.
export function ForceQuestion(props: Question) {
  const mine = rights.value;
  return mine && !mine.may_force && mine.needs_secret
    ? <SecretQuestion on_close={props.on_close} /> : <Sure {...props} />;
}

/// Stays when the holder changes while it is open: then it says so.
function Sure(props: Question) {
  const [typed, set_typed] = useState("");
  const [reason, set_reason] = useState("");
  const [is_asking, set_asking] = useState(false);
  const [problem, set_problem] = useState<Problem>();
  const { hold, place } = props;
  const is_sure = typed.trim() === hold.token;
  const take_away = async (event: Event) => {
    event.preventDefault();
    if (!is_sure || is_asking) {
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
        // The login may have ended: then the secret is asked for again.
        rights.value = await api.rights().catch(() => rights.value);
      }
    }
  };
  return (
    <Dialog label="Force release" on_close={props.on_close}>
      <form onSubmit={take_away}>
        <h2>Take this lock away?</h2>
        <p>
          <strong>{owner_of(hold)}</strong>{hold.user && ` (user ${hold.user})`} holds{" "}
          <strong class="mono break">{place.name}</strong>. It is notified, but it may be in the
          middle of its work: what it writes from now on is refused only where storage checks the
          fencing token.
        </p>
        <label class="field">
          <span>Type its token, <strong class="mono">{hold.token}</strong>, to be sure</span>
          <input class="input mono" value={typed} autoFocus autoComplete="off" inputMode="numeric"
                 onInput={(event) => set_typed(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Reason, for the server's log and the event (optional)</span>
          <input class="input" value={reason} autoComplete="off" maxLength={200}
                 onInput={(event) => set_reason(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="error" role="alert">
            {problem.status === 409 ? "It is not held with this token any more." : problem.detail}
            {problem.status !== 409 && <> {what_to_do(problem)}</>}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={props.on_close}>Keep it</button>
          <button type="submit" class="button is-danger is-solid" disabled={!is_sure || is_asking}>
            Take it away
          </button>
        </div>
      </form>
    </Dialog>
  );
}
