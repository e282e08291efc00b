// Whether the viewport is as narrow as that of a phone.

import { useEffect, useState } from "preact/hooks";

const query = matchMedia("(max-width: 720px)");

export function use_narrow(): boolean {
  const [is_narrow, set_narrow] = useState(query.matches);
  useEffect(() => {
    const on_change = () => set_narrow(query.matches);
    query.addEventListener("change", on_change);
    return () => query.removeEventListener("change", on_change);
  }, []);
  return is_narrow;
}
