// Login view of a server with users. The requested view, which is in the address, follows it.

import { useState } from "preact/hooks";

import { api, Problem, problem_of } from "../api/client";
import { Icon } from "../parts/icon";
import { what_to_do } from "../parts/states";

export function Login() {
  const [token, set_token] = useState("");
  const [is_asking, set_asking] = useState(false);
  const [problem, set_problem] = useState<Problem>();
  const log_in = async (event: Event) => {
    event.preventDefault();
    if (is_asking || token.trim() === "") {
      return;
    }
    set_asking(true);
    try {
      await api.login(token.trim());
      // The reload discards the data of a previous user.
      location.reload();
    } catch (error) {
      set_problem(problem_of(error));
      set_asking(false);
    }
  };
  return (
    <form class="card login" onSubmit={log_in}>
      <h1><Icon name="user" /> Log in</h1>
      <p>This server requires a login. Enter your token; an administrator of the server creates
        one with <code>tenured token</code>.</p>
      <label class="field">
        <span>Token</span>
        <input class="input mono" type="password" value={token} autoFocus required
               autoComplete="current-password" spellcheck={false}
               onInput={(event) => set_token(event.currentTarget.value)} />
      </label>
      {problem && (
        <p class="error" role="alert">
          {problem.status === 401 ? "Unknown token." : what_to_do(problem)}
        </p>
      )}
      <div class="dialog-buttons">
        {is_asking && <span class="why-not" role="status">Waiting for the server…</span>}
        <button type="submit" class="button is-primary" disabled={is_asking}>
          Log in
        </button>
      </div>
    </form>
  );
}
