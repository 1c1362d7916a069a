// A print shows what is folded on screen.
(() => {
  document.documentElement.classList.add("scripted");
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll("details:not([open])"));
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => {
    for (const d of closed.splice(0)) d.open = false;
  });
})();

// The table of published numbers, once it is there: filters and sorting.
addEventListener("chapter", () => {
  const table = document.getElementById("lines");
  if (!table || table.dataset.sorted) return;
  table.dataset.sorted = "true";
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const cell = (row, column) => row.cells[column];
  const words = row => row.textContent.toLowerCase();
  const experiment = document.getElementById("filter-experiment");
  const verdict = document.getElementById("filter-verdict");
  const text = document.getElementById("filter-text");
  const count = document.getElementById("filter-count");
  const form = document.getElementById("filters");

  for (const name of new Set(rows.map(r => cell(r, 0).textContent))) {
    experiment.add(new Option(name, name));
  }

  function filter() {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const all = words(row);
      row.hidden = experiment.value !== "" && cell(row, 0).textContent !== experiment.value ||
        verdict.value !== "" && cell(row, 7).textContent !== verdict.value ||
        !wanted.every(w => all.includes(w));
      if (!row.hidden) shown++;
    }
    count.textContent = shown + " of " + rows.length + " lines";
  }

  // A heading sorts upwards, downwards, then not at all. What has no number comes last.
  const places = new Map([...verdict.options].map((o, i) => [o.value, i]));
  function key(row, column) {
    const c = cell(row, column);
    if (column === 7) return places.get(c.textContent);
    if (c.dataset.sort !== undefined) return Number(c.dataset.sort);
    return c.classList.contains("words") ? undefined : c.textContent.toLowerCase();
  }
  function sort(th, column) {
    const next = { none: "ascending", ascending: "descending", descending: "none" }[th.getAttribute("aria-sort") || "none"];
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    th.setAttribute("aria-sort", next);
    let order = rows;
    if (next !== "none") {
      const sign = next === "ascending" ? 1 : -1;
      order = rows.map((row, i) => ({ row, i, k: key(row, column) })).sort((a, b) => {
        if (a.k === undefined || b.k === undefined) return (a.k === undefined) - (b.k === undefined) || a.i - b.i;
        return (a.k < b.k ? -sign : a.k > b.k ? sign : 0) || a.i - b.i;
      }).map(x => x.row);
    }
    body.append(...order);
  }
  [...table.tHead.rows[0].cells].forEach((th, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = th.textContent;
    th.replaceChildren(button);
    th.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(th, column));
  });

  for (const input of [experiment, verdict, text]) input.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", e => e.preventDefault());
  filter();
});
