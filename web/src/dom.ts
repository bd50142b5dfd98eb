// Elements, and files to save. Texts only ever become text nodes, so that no name in a recording is markup.
type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string | ((e: Event) => void)> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "string") e.setAttribute(key, value);
    else e.addEventListener(key, value);
  }
  for (const child of children) if (child) e.append(child);
  return e;
}

export function save(name: string, type: string, text: string) {
  const a = el("a", { download: name });
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

const cell = (x: unknown) => {
  const s = String(x ?? "");
  const safe = /^[=+\-@\t\r]/.test(s) && Number.isNaN(Number(s)) ? `'${s}` : s; // no formula for a spreadsheet
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
export const csv = (rows: unknown[][]) => rows.map((r) => r.map(cell).join(",")).join("\r\n");

export function savers(name: string, svg: (() => string) | null, rows: () => unknown[][]): HTMLElement {
  return el("span", { class: "savers" },
    svg && el("button", { type: "button", title: "save this picture as SVG", click: () => save(`${name}.svg`, "image/svg+xml", svg()) }, "SVG"),
    el("button", { type: "button", title: "save its data as CSV", click: () => save(`${name}.csv`, "text/csv", csv(rows())) }, "CSV"));
}

export function choice(label: string, options: [string, string][], value: string, on: (value: string) => void): HTMLElement {
  const select = el("select", { change: () => on(select.value) });
  for (const [v, text] of options) select.append(el("option", { value: v }, text));
  select.value = value;
  return el("label", { class: "choice" }, `${label} `, select);
}
