// Modal dialog. The native <dialog> element traps the focus and closes on Escape.

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
  // The close event of a dialog that is replaced by another one arrives after it was removed.
  const closed = () => element.current && props.on_close();
  return (
    <dialog ref={element} class="dialog" aria-label={props.label} onClose={closed}
            onClick={(event) => event.target === element.current && props.on_close()}>
      <div class="dialog-inside">{props.children}</div>
    </dialog>
  );
}
