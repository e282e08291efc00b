// Light, dark, or as the system has it.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const key = "tenure.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // It may be forbidden.
  }
}

export const theme = signal<Theme>(stored());
const system_dark = matchMedia("(prefers-color-scheme: dark)");
/// What it comes to; charts are drawn anew when it changes.
export const is_dark = signal(system_dark.matches);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  is_dark.value = theme.value === "system" ? system_dark.matches : theme.value === "dark";
  try {
    localStorage.setItem(key, theme.value);
  } catch {
    // Then it is forgotten.
  }
});
system_dark.addEventListener("change", () => {
  if (theme.value === "system") {
    is_dark.value = system_dark.matches;
  }
});
