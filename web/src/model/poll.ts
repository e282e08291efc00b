// Hook that polls a request while its component is mounted, ten times slower while hidden.

import { useEffect, useRef, useState } from "preact/hooks";

import { Problem, problem_of } from "../api/client";

export interface Polled<T> {
  value: T | undefined;
  /// The last attempt failed; `value` is what was there before.
  problem: Problem | undefined;
  /// Time of the last successful response, on the clock of the page.
  at: number;
  again: () => void;
}

export function use_poll<T>(ask: () => Promise<T>, every_ms: number, key = ""): Polled<T> {
  const [state, set_state] = useState<Omit<Polled<T>, "again"> & { key: string }>(
    { value: undefined, problem: undefined, at: 0, key });
  const trigger = useRef<() => void>(() => {});
  const asking = useRef(ask);
  asking.current = ask;

  useEffect(() => {
    let is_over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let is_asking = false;
    const run = async () => {
      if (is_asking) {
        return;
      }
      clearTimeout(timer);
      is_asking = true;
      try {
        const value = await asking.current();
        if (!is_over) {
          set_state({ value, problem: undefined, at: performance.now(), key });
        }
      } catch (error) {
        const problem = problem_of(error);
        if (!is_over) {
          set_state((before) => ({
            value: before.key === key && problem.status !== 404 ? before.value : undefined,
            problem, at: before.at, key }));
        }
      }
      is_asking = false;
      if (!is_over) {
        timer = setTimeout(run, document.hidden ? every_ms * 10 : every_ms);
      }
    };
    trigger.current = () => void run();
    const on_visible = () => {
      if (!document.hidden) {
        void run();
      }
    };
    document.addEventListener("visibilitychange", on_visible);
    void run();
    return () => {
      is_over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", on_visible);
    };
  }, [every_ms, key]);

  const is_current = state.key === key;
  return {
    value: is_current ? state.value : undefined,
    problem: is_current ? state.problem : undefined,
    at: state.at,
    again: () => trigger.current(),
  };
}
