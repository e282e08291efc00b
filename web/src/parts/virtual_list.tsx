// Virtualised list: only the visible rows exist in the DOM.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface VirtualListProps<T> {
  items: readonly T[];
  label: string;
  row_height: number;
  key_of: (item: T) => string;
  link_of: (item: T) => string;
  render: (item: T) => ComponentChildren;
  head: ComponentChildren;
  columns: number;
  row_class?: (item: T) => string;
  /// Called with the visible rows when they have changed.
  on_visible?: (items: readonly T[]) => void;
}

const beyond = 8;

export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, row_height } = props;
  const body = useRef<HTMLDivElement>(null);
  const [view, set_view] = useState({ top: 0, height: 800 });
  const [active, set_active] = useState(0);
  const [has_focus, set_focus] = useState(false);
  const current = Math.min(active, Math.max(0, items.length - 1));

  // The page scrolls instead of a nested box, which is hard to scroll on a phone.
  useLayoutEffect(() => {
    const measure = () => {
      const box = body.current?.getBoundingClientRect();
      if (box) {
        set_view({ top: Math.max(0, -box.top), height: innerHeight });
      }
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);

  const first = Math.max(0, Math.floor(view.top / row_height) - beyond);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / row_height) + beyond);
  const shown = items.slice(first, last);
  const { on_visible } = props;
  useEffect(() => on_visible?.(shown), [items, first, last]);

  const go_to = (index: number) => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    set_active(next);
    const box = body.current;
    if (!box) {
      return;
    }
    const top = box.getBoundingClientRect().top + next * row_height;
    const head = 110;
    if (top < head) {
      scrollBy(0, top - head);
    } else if (top + row_height > innerHeight) {
      scrollBy(0, top + row_height - innerHeight + 8);
    }
  };
  const on_key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(innerHeight / row_height) - 4);
    const moves: Record<string, number> = {
      ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page,
      PageUp: current - page, Home: 0, End: items.length - 1,
    };
    const target = moves[event.key];
    if (target !== undefined) {
      event.preventDefault();
      go_to(target);
    } else if (event.key === "Enter" && event.target === body.current && items[current]) {
      location.hash = props.link_of(items[current]!);
    }
  };

  return (
    <div class="table" role="table" aria-label={props.label} aria-rowcount={items.length + 1}
         aria-colcount={props.columns}>
      {props.head}
      <div class="table-body" role="rowgroup" ref={body} tabIndex={0}
           aria-label={`${props.label}: arrow keys move, Enter opens`}
           style={{ height: `${items.length * row_height}px` }} onKeyDown={on_key}
           onFocus={(event) => set_focus(event.target === body.current)}
           onBlur={() => set_focus(false)}>
        {shown.map((item, index) => (
          <div key={props.key_of(item)} role="row" aria-rowindex={first + index + 2}
               class={`row ${props.row_class?.(item) ?? ""} ` +
                      (has_focus && first + index === current ? "is-active" : "")}
               style={{ transform: `translateY(${(first + index) * row_height}px)`,
                        height: `${row_height}px` }}>
            {props.render(item)}
          </div>
        ))}
      </div>
    </div>
  );
}
