// A question that has to be answered before anything else. The browser's own <dialog> keeps the
// focus inside and closes on Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog(props: { label: string; on_close: () => void;
                                children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} class="dialog" aria-label={props.label} onClose={props.on_close}
            onClick={(event) => event.target === element.current && props.on_close()}>
      <div class="dialog-inside">{props.children}</div>
    </dialog>
  );
}
