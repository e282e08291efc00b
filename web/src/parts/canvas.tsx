// Canvas with pan and zoom by mouse, touch, buttons and keys. It fits the drawing at first.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./icon";

interface View {
  x: number;
  y: number;
  scale: number;
}

/// The buttons are in the head, where they cover no part of the drawing.
export function Canvas(props: { width: number; height: number; head: ComponentChildren;
                                children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const [box, set_box] = useState({ width: 900, height: 420 });
  // Nothing: as it fits.
  const [chosen, set_chosen] = useState<View>();
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);

  useLayoutEffect(() => {
    const element = place.current!;
    const measure = () => set_box({ width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const scale = Math.min(1.15, box.width / Math.max(1, props.width),
    box.height / Math.max(1, props.height));
  const fit: View = { scale, x: (box.width - props.width * scale) / 2,
    y: (box.height - props.height * scale) / 2 };
  const view = chosen ?? fit;
  const zoom = (factor: number, x = box.width / 2, y = box.height / 2) => {
    const next = Math.max(0.1, Math.min(3, view.scale * factor));
    const ratio = next / view.scale;
    set_chosen({ scale: next, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio });
  };
  const on_wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) {
      return; // The page scrolls.
    }
    event.preventDefault();
    const at = place.current!.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - at.left, event.clientY - at.top);
  };
  const on_move = (event: PointerEvent) => {
    if (drag.current) {
      set_chosen({ ...view, x: view.x + event.clientX - drag.current.x,
        y: view.y + event.clientY - drag.current.y });
      drag.current = { x: event.clientX, y: event.clientY };
    }
  };
  const on_key = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0],
      ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const step = steps[event.key];
    if (step) {
      event.preventDefault();
      set_chosen({ ...view, x: view.x + step[0], y: view.y + step[1] });
    } else if (event.key === "+" || event.key === "-") {
      zoom(event.key === "+" ? 1.25 : 0.8);
    } else if (event.key === "0") {
      set_chosen(undefined);
    }
  };
  return (
    <>
      <div class="graph-head">
        {props.head}
        <div class="canvas-buttons" role="group" aria-label="Zoom">
          <button aria-label="Zoom in" title="Zoom in" onClick={() => zoom(1.25)}>
            <Icon name="plus" /></button>
          <button aria-label="Zoom out" title="Zoom out" onClick={() => zoom(0.8)}>
            <Icon name="minus" /></button>
          <button aria-label="Fit" title="Fit" onClick={() => set_chosen(undefined)}>
            <Icon name="fit" /></button>
        </div>
      </div>
      <div class="canvas" ref={place} tabIndex={0} role="group" onKeyDown={on_key}
           onWheel={on_wheel}
           aria-label="Drawing: arrow keys move it, plus and minus zoom, 0 fits"
           style={{ height: `${Math.max(220, Math.min(560, props.height + 40))}px` }}
           onPointerDown={(event) => {
             if (event.target instanceof SVGSVGElement) {
               drag.current = { x: event.clientX, y: event.clientY };
               place.current!.setPointerCapture(event.pointerId);
             }
           }}
           onPointerMove={on_move} onPointerUp={() => (drag.current = undefined)}
           onPointerCancel={() => (drag.current = undefined)}>
        <svg width="100%" height="100%">
          <g style={{ transform: `translate(${view.x.toFixed(1)}px, ${view.y.toFixed(1)}px) ` +
              `scale(${view.scale.toFixed(3)})` }}>
            {props.children}
          </g>
        </svg>
      </div>
    </>
  );
}
