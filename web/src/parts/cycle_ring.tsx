// Drawing of a deadlock: a ring of owners, each waiting for the next.

import type { CycleStep } from "../api/types";
import { owner_hue, owner_of } from "../model/format";

const size = 132;
const radius = 46;
const shown_max = 12;

export function CycleRing(props: { cycle: CycleStep[] }) {
  const steps = props.cycle.slice(0, shown_max);
  const at = (index: number) => {
    const angle = -Math.PI / 2 + index * 2 * Math.PI / steps.length;
    return { angle, x: size / 2 + radius * Math.cos(angle),
      y: size / 2 + radius * Math.sin(angle) };
  };
  // Each arc ends before the dot it goes to.
  const gap = 0.34;
  const arc = (index: number) => {
    const step = 2 * Math.PI / steps.length;
    const from = at(index).angle + gap;
    const to = at(index).angle + step - gap;
    const point = (angle: number) => `${(size / 2 + radius * Math.cos(angle)).toFixed(1)} ` +
      (size / 2 + radius * Math.sin(angle)).toFixed(1);
    return `M${point(from)}A${radius} ${radius} 0 ${to - from > Math.PI ? 1 : 0} 1 ${point(to)}`;
  };
  return (
    <svg class="ring" viewBox={`0 0 ${size} ${size}`} role="img"
         aria-label={`A cycle of ${props.cycle.length}`}>
      <defs>
        <marker id="arrow-ring" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6"
                markerHeight="6" orient="auto"><path class="arrow-head is-bad"
                d="M0 .5 7.500 4 0 7.500z" /></marker>
      </defs>
      {steps.map((step, i) => (
        <path key={`arc ${step.lease} ${step.request}`} class="ring-arc" d={arc(i)}
              marker-end="url(#arrow-ring)" />
      ))}
      {steps.map((step, i) => (
        <circle key={`${step.lease} ${step.request}`} cx={at(i).x} cy={at(i).y} r={11}
                class={`ring-dot ${i === 0 ? "is-victim" : ""}`}
                style={{ "--hue": String(owner_hue(step)) }}>
          <title>{owner_of(step)}</title>
        </circle>
      ))}
    </svg>
  );
}
