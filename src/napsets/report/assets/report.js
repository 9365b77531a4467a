/* The page's behaviour: charts that are drawn when their section is open, a choice of methods that all of them follow,
   and the explorer, which shows what the library computed for each node and method. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const read = (id) => JSON.parse($(id).textContent);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // ---- charts ---------------------------------------------------------------------------------------------------

  const specs = read("data-specs");
  const views = {};
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const letters = { labelColor: "var(--muted)", titleColor: "var(--muted)", labelFont: font, titleFont: font, labelFontSize: 12, titleFontSize: 12 };
  const axis = { ...letters, gridColor: "var(--line)", titleFontWeight: 400, titlePadding: 8, domain: false, ticks: false, labelPadding: 6, labelOverlap: "greedy", labelSeparation: 6 };
  const options = {
    formatLocale: { decimal: ".", thousands: ",", grouping: [3], currency: ["$", ""], percent: "\u00a0%" },
    actions: false, renderer: "svg", defaultStyle: false, tooltip: { theme: "custom", disableDefaultStyle: true },
    config: { axis, legend: letters, background: null, view: { stroke: null }, font, text: { font }, mark: { color: "var(--accent)" }, point: { opacity: 1 } },
  };
  const shownMethods = () => all('input[name="shown"]:checked').map((box) => box.value);

  async function draw(place) {
    const name = place.dataset.chart;
    if (views[name] || place.dataset.drawn) return;
    place.dataset.drawn = "false";
    const spec = { ...specs[name], description: place.getAttribute("aria-label") };
    views[name] = (await window.vegaEmbed(place, spec, options)).view;
    if (all('input[name="shown"]').length && name !== "scores") await views[name].signal("shown", shownMethods()).runAsync();
    place.dataset.drawn = "true";
  }

  // Charts in closed sections have no width: they are drawn when their section is opened.
  const isOpen = (place) => !place.closest("details:not([open])");
  async function drawOpen(within = document) {
    for (const place of all('[data-chart]:not([data-chart="scores"])', within).filter(isOpen)) {
      await draw(place);
      await new Promise((resume) => setTimeout(resume)); // clicks and scrolling come between
    }
  }

  const tableOf = (head, rows, left = 1) => make("table", { class: "stack" },
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value, c) =>
      c ? make("td", c < left ? { class: "text", "data-label": head[c] } : { "data-label": head[c] }, value) : make("th", { scope: "row" }, value))))));
  const scrolling = (table, label) => make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);

  function numbers(details) {
    if (!details.open || details.childElementCount > 1) return;
    const rows = specs[details.dataset.numbers].datasets.rows;
    const columns = Object.keys(rows[0] ?? {}).filter((name) => !["order", "taken"].includes(name));
    const text = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : String(value ?? "–"));
    details.append(scrolling(tableOf(columns, rows.map((row) => columns.map((name) => text(row[name])))), "Numbers of the chart"));
  }

  function showClasses(button) {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? button.dataset.less : button.dataset.more;
    const { of: chart, first, total } = button.dataset;
    const height = specs[chart].height;
    views[chart]?.signal("limit", open ? Number(total) : Number(first)).height(open ? (height * total) / first : height).runAsync();
  }

  // ---- explorer -------------------------------------------------------------------------------------------------

  let data = null; // unpacked when the explorer is opened
  let current = 0;
  const finder = $("finder") ? read("data-finder") : { names: [], reason: [], start: 0 };

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  let opening = null;
  const openExplorer = (place) => (opening ??= (async () => {
    data = await unpack($("data-explorer").textContent);
    $("nodes").replaceChildren(...finder.names.map((name) => make("option", { value: name })));
    await show(place ?? finder.start, false);
    document.documentElement.dataset.explored = "true";
  })());

  const methodIndex = () => Number($("method").value);
  const candidates = () => {
    const reason = Number($("reason").value);
    return finder.names.map((_, i) => i).filter((i) => reason < 0 || finder.reason[i][reason]);
  };

  async function show(i, address = true) {
    current = i;
    $("search").value = finder.names[i];
    $("search-message").textContent = "";
    if (address) history.replaceState(null, "", `#node=${encodeURIComponent(finder.names[i])}`);
    const [m, seen] = [methodIndex(), data.nodes[i][methodIndex()]];
    $("node-title").textContent = `${$("finder").dataset.node} ${finder.names[i]}`;
    $("node-set").replaceChildren(...(seen.outcome.length ? seen.outcome : ["the empty set"]).map((name) => make("li", name === seen.true ? { class: "true" } : {}, name)));
    $("node-covers").textContent = `${data.methods[m]} ${seen.covers ? "covers" : "misses"} the true ${$("finder").dataset.label}, ${seen.true}.`;
    $("node-covers").className = `verdict ${seen.covers ? "covers" : "misses"}`;
    $("node-reason").textContent = seen.reason;
    $("node-facts").replaceChildren(...seen.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    $("node-tables").replaceChildren(...seen.tables.map(([title, head, rows, left, note]) =>
      make("div", { class: "card" }, make("h3", {}, title), scrolling(tableOf(head, rows, left), title), ...(note ? [make("p", {}, note)] : []))));
    await drawScores(seen);
  }

  async function drawScores(seen) {
    const sums = new Map();
    for (const bar of seen.bars) sums.set(bar.from, (sums.get(bar.from) ?? 0) + bar.mass);
    // A bar of no height stands in for none, so that the chart always has something to stack.
    const none = [{ group: "hop 1", from: seen.low, to: seen.high, count: 0, mass: 0 }];
    const labels = seen.marks.map(([name, score, inside]) => ({ name, score, inside, verdict: inside ? "inside" : "outside" }));
    const datasets = { bars: seen.bars.length ? seen.bars : none, labels, threshold: seen.threshold === null ? [] : [{ threshold: seen.threshold }] };
    specs.scores.datasets = datasets; // a chart without any data would complain
    await draw($("node-scores"));
    views.scores.signal("low", seen.low).signal("high", seen.high).signal("top", Math.max(1e-9, ...sums.values()));
    for (const [name, rows] of Object.entries(datasets)) views.scores.data(name, rows);
    await views.scores.runAsync();
  }

  function submit(event) {
    event.preventDefault();
    const typed = $("search").value;
    const place = [typed, typed.trim()].map((name) => finder.names.indexOf(name)).find((i) => i >= 0);
    if (place !== undefined) return show(place);
    $("search-message").textContent = `${typed} is not among the ${finder.names.length} on this page; the command above explains it.`;
  }

  function step(direction) {
    const list = candidates();
    const here = list.indexOf(current);
    if (list.length) show(list[here < 0 ? 0 : (here + direction + list.length) % list.length]);
  }

  async function fromAddress() {
    let name = location.hash.match(/^#node=(.*)$/)?.[1];
    if (name === undefined) return;
    try { name = decodeURIComponent(name); } catch { /* an address that a person typed */ }
    const place = finder.names.indexOf(name);
    if (place < 0 || (data && place === current)) return;
    const opened = openExplorer(place);
    $("explorer").open = true;
    await opened;
    if (place !== current) await show(place);
  }

  // ---- start ----------------------------------------------------------------------------------------------------

  for (const box of all('input[name="shown"]')) box.addEventListener("change", () => {
    for (const [name, view] of Object.entries(views)) if (name !== "scores") view.signal("shown", shownMethods()).runAsync();
  });
  for (const details of all("[data-numbers]")) details.addEventListener("toggle", () => numbers(details));
  for (const button of all("button[data-of]")) button.addEventListener("click", () => showClasses(button));
  // A phone shows the summary, and each section when it is opened.
  if (window.matchMedia("(max-width: 760px)").matches) for (const section of all("details.section")) section.open = false;
  for (const section of all("details.section")) section.addEventListener("toggle", () => section.open && drawOpen(section));
  for (const link of all('nav a[href^="#"]')) link.addEventListener("click", () => { const target = $(link.hash.slice(1)); if (target?.tagName === "DETAILS") target.open = true; });
  if ($("explorer")) {
    $("explorer").addEventListener("toggle", () => $("explorer").open && openExplorer());
    $("finder").addEventListener("submit", submit);
    $("search").addEventListener("change", () => finder.names.includes($("search").value) && show(finder.names.indexOf($("search").value)));
    $("search").addEventListener("focus", () => $("search").select());
    $("method").addEventListener("change", () => show(current));
    $("reason").addEventListener("change", () => step(0));
    $("previous").addEventListener("click", () => step(-1));
    $("next").addEventListener("click", () => step(1));
    window.addEventListener("hashchange", fromAddress);
  }
  drawOpen().then(fromAddress).then(() => { document.documentElement.dataset.ready = "true"; });
})();
