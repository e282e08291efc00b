// Colour theme: light, dark, or the preference of the system.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const key = "tenure.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // Storage may be blocked.
  }
}

export const theme = signal<Theme>(stored());
const system_dark = matchMedia("(prefers-color-scheme: dark)");
/// Resolved theme; charts redraw when it changes.
export const is_dark = signal(system_dark.matches);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  is_dark.value = theme.value === "system" ? system_dark.matches : theme.value === "dark";
  try {
    localStorage.setItem(key, theme.value);
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
});
system_dark.addEventListener("change", () => {
  if (theme.value === "system") {
    is_dark.value = system_dark.matches;
  }
});
