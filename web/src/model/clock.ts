// Times that run while one looks at them.

import { signal } from "@preact/signals";

/// Milliseconds, four times a second; what shows a running time reads it.
export const now = signal(performance.now());

setInterval(() => {
  if (!document.hidden) {
    now.value = performance.now();
  }
}, 250);
