// Clock of the page, for durations that count up on the screen.

import { signal } from "@preact/signals";

/// Milliseconds since the page was loaded, updated four times a second while the page is visible.
export const now = signal(performance.now());

setInterval(() => {
  if (!document.hidden) {
    now.value = performance.now();
  }
}, 250);
