  /* The page's behaviour: charts drawn when there is time, a choice of methods that all of them follow, and the
     map.

     A page holds this, explorer.js and one of sets.js and intervals.js, in one scope: the last says what differs (`kind`). */
  const $ = (id) => document.getElementById(id);
  const read = (id) => JSON.parse($(id).textContent);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const svg = (tag, attributes = {}) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const group = (value) => value.toLocaleString("en-US");
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);
  const fixed = (value, digits = 4) => (Number.isFinite(value) ? value.toFixed(digits) : "+∞");

  // ---- charts ---------------------------------------------------------------------------------------------------

  const specs = read("data-specs");
  const views = {};
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const axis = {
    labelColor: "var(--muted)", titleColor: "var(--muted)", gridColor: "var(--line)", domainColor: "var(--line)",
    tickColor: "var(--line)", labelFont: font, titleFont: font, labelFontSize: 12, titleFontSize: 12,
    titleFontWeight: 400, titlePadding: 8, domain: false, ticks: false, labelPadding: 6, labelOverlap: "greedy", labelSeparation: 6,
  };
  const options = {
    formatLocale: { decimal: ".", thousands: ",", grouping: [3], currency: ["$", ""], percent: "\u00a0%" },
    actions: false, renderer: "svg", defaultStyle: false, tooltip: { theme: "custom", disableDefaultStyle: true },
    config: { axis, background: null, view: { stroke: null }, font, text: { font }, mark: { color: "var(--accent)" }, point: { opacity: 1 } },
  };

  async function draw(name) {
    const place = document.querySelector(`[data-chart="${name}"]`);
    const spec = { ...specs[name], description: place.getAttribute("aria-label") };
    if (live[name]) {
      const now = live[name]();
      spec.datasets = now.datasets;
      spec.params = spec.params.map((param) => (param.name in now.params ? { ...param, value: now.params[param.name] } : param));
    }
    const result = await window.vegaEmbed(place, spec, options);
    views[name] = result.view;
    place.dataset.drawn = "true";
    if (name.startsWith("map-")) result.view.addEventListener("click", (event, item) => item?.datum?.ball !== undefined && pickBall(item.datum.ball));
    if (name === "map-right") result.view.signal("method", $("map-method").value);
    if (live[name]) redraw(name);
    else result.view.signal("shown", shownMethods());
    await result.view.runAsync();
  }

  // Charts of the node that is looked at: what they draw, and their parameters, now.
  const live = { scores: scoreChart };

  function redraw(name) {
    if (!views[name]) return;
    const now = live[name]();
    for (const [param, value] of Object.entries(now.params)) views[name].signal(param, value);
    for (const [dataset, rows] of Object.entries(now.datasets)) views[name].data(dataset, rows);
    views[name].runAsync();
  }

  async function drawEach(places) {
    for (const place of places) {
      await draw(place.dataset.chart);
      await new Promise((resume) => setTimeout(resume)); // clicks and scrolling come between
    }
  }

  async function start() {
    // What is on the screen comes first, then the explorer, then all other charts.
    const places = [...document.querySelectorAll("[data-chart]")];
    const near = new Set(places.filter((place) => place.getBoundingClientRect().top < window.innerHeight));
    for (const name of Object.keys(live)) near.delete(document.querySelector(`[data-chart="${name}"]`));
    await drawEach(near);
    document.documentElement.dataset.opened = "true";
    openExplorer();
    await drawEach(places.filter((place) => !near.has(place)));
    document.documentElement.dataset.ready = "true";
  }

  const shownMethods = () => [...document.querySelectorAll('input[name="shown"]:checked')].map((box) => box.value);

  function showMethods() {
    for (const [name, view] of Object.entries(views)) if (!live[name]) view.signal("shown", shownMethods()).runAsync();
  }

  function turn(button) {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    return open;
  }

  function numbers(details) {
    if (!details.open || details.childElementCount > 1) return;
    const rows = specs[details.dataset.numbers].data.values;
    const columns = Object.keys(rows[0] ?? {}).filter((name) => !["x", "y", "order", "ball", "judged", "taken"].includes(name));
    const text = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : String(value ?? "–"));
    details.append(scrolling(tableOf(columns, rows.map((row) => columns.map((name) => text(row[name]))))));
  }

  function tableOf(head, rows, classes = []) {
    const table = make("table", { class: "stack" });
    fillTable(table, head, rows, classes);
    return table;
  }

  function fillTable(table, head, rows, classes = []) {
    const top = make("tr");
    for (const name of head) top.append(make("th", { scope: "col" }, name));
    const body = make("tbody");
    rows.forEach((row, r) => {
      const line = make("tr", classes[r] ? { class: classes[r] } : {});
      row.forEach((value, c) => line.append(c ? make("td", { "data-label": head[c] }, value) : make("th", { scope: "row" }, value)));
      body.append(line);
    });
    table.replaceChildren(make("thead", {}, top), body);
  }

  const scrolling = (table) => make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the chart" }, table);

  // ---- map ------------------------------------------------------------------------------------------------------

  function pickBall(ball) {
    $("ball-choice").value = String(ball);
    for (const name of ["map-left", "map-right"]) views[name]?.signal("picked", ball).runAsync();
    const row = specs["map-left"].data.values[ball];
    if (!row) return $("ball-detail").replaceChildren();
    const rows = data.methods.map((method) => [method, percent(row[method]), kind.size(row[`${method} ${kind.sizeKey}`])]);
    const inside = data.names.map((name, i) => i).filter((i) => data.ball[i] === ball);
    const list = make("ul", { class: "chips" });
    for (const i of inside.slice(0, 24)) {
      const button = make("button", { type: "button" }, data.names[i]);
      button.addEventListener("click", () => { show(i); $("explorer").scrollIntoView(); });
      list.append(make("li", {}, button));
    }
    const share = `${group(row.nodes)} nodes, ${kind.ballText(row)}`;
    $("ball-detail").replaceChildren(
      make("h3", {}, share), tableOf(["Method", "Coverage", kind.sizeTitle], rows),
      make("p", {}, inside.length ? "Explorable nodes in it:" : "None of its nodes is among the explorable ones."), list);
  }

  // ---- start ----------------------------------------------------------------------------------------------------

  function listen() {
    for (const box of document.querySelectorAll('input[name="shown"]')) box.addEventListener("change", showMethods);
    for (const details of document.querySelectorAll("[data-numbers]")) details.addEventListener("toggle", () => numbers(details));
    for (const button of document.querySelectorAll('input[name="method"]')) button.addEventListener("change", refresh);
    kind.listen();
    // A graph of small pieces has no neighbourhoods to map.
    $("map-method")?.addEventListener("change", () => {
      $("map-text").textContent = $("map-method").selectedOptions[0].dataset.text;
      views["map-right"]?.signal("method", $("map-method").value).runAsync();
    });
    $("ball-choice")?.addEventListener("change", () => pickBall(Number($("ball-choice").value)));
    $("search").addEventListener("input", openMatches);
    $("search").addEventListener("focus", () => $("search").select());
    $("search").addEventListener("blur", closeMatches);
    $("search").addEventListener("keydown", searchKey);
    $("finder").addEventListener("submit", submit);
    $("reason").addEventListener("change", () => step(0));
    $("previous").addEventListener("click", () => step(-1));
    $("next").addEventListener("click", () => step(1));
    window.addEventListener("hashchange", fromAddress);
  }

  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return text; } // an address that a person typed
  }

  const quoted = (text) => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

  function fromAddress() {
    const wanted = decoded(location.hash.match(/^#node=(.*)$/)?.[1] ?? "");
    if (position.has(wanted) && position.get(wanted) !== current) show(position.get(wanted));
  }
