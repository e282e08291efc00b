// Dialog for the secret of a server without users. It exchanges the secret for a login cookie,
// which all pages of this browser share until it expires.

import { useState } from "preact/hooks";

import { api, Problem, problem_of } from "../api/client";
import { rights } from "../model/server";
import { Dialog } from "./dialog";
import { what_to_do } from "./states";

export function SecretDialog(props: { on_close: () => void }) {
  const [secret, set_secret] = useState("");
  const [is_asking, set_asking] = useState(false);
  const [problem, set_problem] = useState<Problem>();
  const log_in = async (event: Event) => {
    event.preventDefault();
    if (is_asking || secret.trim() === "") {
      return;
    }
    set_asking(true);
    try {
      await api.login(secret.trim());
      // The confirmation dialog replaces this one.
      rights.value = await api.rights();
    } catch (error) {
      set_problem(problem_of(error));
    }
    set_asking(false);
  };
  return (
    <Dialog label="Secret of the server" on_close={props.on_close}>
      <form onSubmit={log_in}>
        <h2>Secret of the server</h2>
        <p>This server has no users. Changes require access to the server's files: paste the
          content of <code>http_secret</code> from its data directory.</p>
        <label class="field">
          <span>Secret</span>
          <input class="input mono" type="password" value={secret} autoFocus required
                 autoComplete="current-password" spellcheck={false}
                 onInput={(event) => set_secret(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="error" role="alert">
            {problem.status === 403 ? "This is not the secret of this server."
              : what_to_do(problem)}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={props.on_close}>Cancel</button>
          {is_asking && <span class="why-not" role="status">Waiting for the server…</span>}
          <button type="submit" class="button is-primary" disabled={is_asking}>
            Continue
          </button>
        </div>
      </form>
    </Dialog>
  );
}
