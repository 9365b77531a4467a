  /* The page's behaviour: charts drawn when there is time, a choice of methods that all of them follow, the map, and the
     explorer, which shows numbers that the library computed and computes none of its own but sums of weights.

     A page holds this and one of sets.js and intervals.js, in one scope: those say what differs (`own`). */
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
    const rows = data.methods.map((method) => [method, percent(row[method]), own.size(row[`${method} ${own.sizeKey}`])]);
    const inside = data.names.map((name, i) => i).filter((i) => data.ball[i] === ball);
    const list = make("ul", { class: "chips" });
    for (const i of inside.slice(0, 24)) {
      const button = make("button", { type: "button" }, data.names[i]);
      button.addEventListener("click", () => { show(i); $("explorer").scrollIntoView(); });
      list.append(make("li", {}, button));
    }
    const share = `${group(row.nodes)} nodes, ${own.ballText(row)}`;
    $("ball-detail").replaceChildren(
      make("h3", {}, share), tableOf(["Method", "Coverage", own.sizeTitle], rows),
      make("p", {}, inside.length ? "Explorable nodes in it:" : "None of its nodes is among the explorable ones."), list);
  }

  // ---- explorer -------------------------------------------------------------------------------------------------

  const arrays = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let b = 0; b < bytes.length; b++) bytes[b] = letters.charCodeAt(b);
    return bytes;
  }

  function unpack(raw) {
    const found = {};
    for (const [name, value] of Object.entries(raw)) {
      if (value?.dtype === undefined) { found[name] = value; continue; }
      found[name] = new arrays[value.dtype](bytesOf(value.data).buffer);
      found[name].shape = value.shape;
    }
    return found;
  }

  let data = null; // unpacked once the first charts are drawn
  let position = new Map();
  let current = 0;

  function openExplorer() {
    data = unpack(read("data-explorer"));
    position = new Map(data.names.map((name, i) => [name, i]));
    current = data.start;
    refresh();
    $("search").value = data.names[current];
    listen();
    fromAddress();
  }

  const methodIndex = () => Number(document.querySelector('input[name="method"]:checked').value);
  const at = (array, ...index) => array[index.reduce((sum, i, d) => sum * array.shape[d] + i, 0)];
  const isLocal = (m) => data.kinds[m] === "hops"; // its thresholds are quantiles of scores around the node
  const isGlobal = (m) => data.kinds[m] === "everyone"; // of all scores; any other method has thresholds of its own making
  const candidates = () => {
    const reason = Number($("reason").value);
    return data.names.map((_, i) => i).filter((i) => reason < 0 || at(data.reason, i, reason));
  };

  function show(i) {
    current = i;
    $("search").value = data.names[i];
    $("search-message").textContent = "";
    closeMatches();
    history.replaceState(null, "", `#node=${encodeURIComponent(data.names[i])}`);
    refresh();
  }

  function refresh() {
    const m = methodIndex();
    $("node-title").textContent = `Node ${data.names[current]}`;
    showFacts(current, m);
    showHops(current, m);
    own.show(current, m);
    drawNeighbourhood(current, m);
    for (const name of Object.keys(live)) redraw(name);
    tellScores();
  }

  function showFacts(i, m) {
    const facts = {
      threshold: ["Threshold", fixed(at(data.thresholds, m, i))],
      support: ["Support", `${group(at(data.support, m, i))} calibration nodes`],
      effective: ["Effective size", at(data.effective_size, m, i).toFixed(1)],
      degree: ["Degree", group(data.degree[i])],
    };
    if (isLocal(m) || isGlobal(m)) facts.mass = ["Weight at or below the threshold", massText(i, m)];
    $("node-facts").replaceChildren(...Object.entries(facts).map(([name, [title, value]]) =>
      make("div", name === "mass" ? { class: "wide" } : {}, make("dt", {}, title), make("dd", { id: `fact-${name}` }, value))));
  }

  function massText(i, m) {
    const s = data.scored[m];
    let below = isLocal(m) ? 0 : at(data.all_below, m, i);
    let total = isLocal(m) ? 0 : data.all_counts[s];
    for (let k = 0; isLocal(m) && k < data.hops; k++) {
      below += at(data.weights, m, k) * at(data.hop_below, m, i, k);
      total += at(data.weights, m, k) * at(data.hop_counts, s, i, k);
    }
    const groups = [[at(data.all_below, m, i), data.all_counts[s]], [at(data.alike_below, m, i), at(data.alike_counts, s, i)]];
    groups.forEach(([inside, all], g) => {
      const weight = all ? at(data.pools, m, g) : 0;
      below += all ? (weight * inside) / all : 0;
      total += weight;
    });
    const level = data.levels[m];
    if (!Number.isFinite(level)) return `${below.toFixed(2)} of ${total.toFixed(2)}; too few labels were kept apart to set a level`;
    return `${below.toFixed(2)}; needed ${(level * (1 + total)).toFixed(2)}, ${level.toFixed(3).replace(/0+$/, "")} × (1 + ${total.toFixed(2)})`;
  }

  function showHops(i, m) {
    const rows = [];
    for (let k = 0; k < data.hops; k++) {
      rows.push([String(k + 1), group(at(data.hop_nodes, i, k)), group(at(data.hop_counts, data.scored[m], i, k)),
        isLocal(m) ? at(data.weights, m, k).toFixed(3) : "–", group(at(data.hop_below, m, i, k))]);
    }
    fillTable($("node-hops"), ["Hop", "Nodes", "Calibrating", "Weight each", "At or below the threshold"], rows);
  }

  function drawNeighbourhood(i, m) {
    const width = data.drawn.shape[1];
    const columns = [...Array(width).keys()].filter((c) => at(data.drawn, i, c) >= 0);
    const deepest = Math.max(1, ...columns.map((c) => at(data.drawn_hop, i, c)));
    const radius = (hop) => (185 * hop) / deepest;
    const points = placed(i, columns, radius);
    const picture = $("drawing");
    picture.replaceChildren();
    for (let k = 1; k <= deepest; k++) picture.append(svg("circle", { class: "ring", r: radius(k), cx: 0, cy: 0 }));
    for (const c of columns) {
      const parent = at(data.drawn_parent, i, c);
      if (parent < -1) continue;
      const [x, y] = parent < 0 ? [0, 0] : points.get(parent);
      picture.append(svg("line", { class: "edge", x1: x, y1: y, x2: points.get(c)[0], y2: points.get(c)[1] }));
    }
    for (const c of columns) picture.append(neighbour(i, m, c, points.get(c)));
    picture.append(svg("circle", { class: "centre", r: 8, cx: 0, cy: 0 }));
    for (let k = 1; k <= deepest; k++) picture.append(hopLabel(k, radius(k)));
    const parts = [...Array(data.hops).keys()].map((k) => `${columns.filter((c) => at(data.drawn_hop, i, c) === k + 1).length} of ${group(at(data.hop_nodes, i, k))} at hop ${k + 1}`);
    $("drawing-text").textContent = columns.length ? `Drawn at random: ${parts.join(", ")}. Larger marks weigh more.` : "This node has no neighbours.";
  }

  function placed(i, columns, radius) {
    // Children stand around their parents' direction, so that edges cross little.
    const angle = new Map();
    const points = new Map();
    const hops = [...new Set(columns.map((c) => at(data.drawn_hop, i, c)))].sort((a, b) => a - b);
    for (const hop of hops) {
      const ring = columns.filter((c) => at(data.drawn_hop, i, c) === hop);
      ring.sort((a, b) => (angle.get(at(data.drawn_parent, i, a)) ?? 9) - (angle.get(at(data.drawn_parent, i, b)) ?? 9) || a - b);
      ring.forEach((c, r) => {
        const turn = 0.2 + ((2 * Math.PI - 0.4) * (r + 0.5)) / ring.length; // the top is left free for the hop's name
        angle.set(c, turn);
        points.set(c, [radius(hop) * Math.sin(turn), -radius(hop) * Math.cos(turn)]);
      });
    }
    return points;
  }

  function neighbour(i, m, c, [x, y]) {
    const row = at(data.drawn, i, c);
    const hop = at(data.drawn_hop, i, c);
    const score = at(data.neighbour_score, data.scored[m], row);
    const name = data.neighbour_names[row];
    const calibrates = !Number.isNaN(score);
    const weight = isLocal(m) ? at(data.weights, m, hop - 1) : Number(isGlobal(m));
    const kind = calibrates ? (score <= at(data.thresholds, m, i) ? "below" : "above") : "other";
    const dot = svg("circle", { class: kind, r: calibrates ? 3 + 3 * Math.sqrt(Math.min(weight, 4)) : 3.5, cx: x, cy: y });
    const title = svg("title");
    title.textContent = `Node ${name}, hop ${hop}` + (calibrates ? `, ${own.neighbourText(row)}, score ${score.toFixed(4)}, weight ${weight.toFixed(3)}` : ", does not calibrate");
    dot.append(title);
    const target = position.get(name);
    if (target !== undefined) {
      dot.classList.add("link");
      dot.setAttribute("tabindex", "0");
      dot.setAttribute("role", "button");
      dot.setAttribute("aria-label", `Explore node ${name}`);
      dot.addEventListener("click", () => show(target));
      dot.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(target); $("search").focus(); } });
    }
    return dot;
  }

  function hopLabel(k, r) {
    const text = svg("text", { x: 0, y: -r + 4 });
    text.textContent = `hop ${k}`;
    return text;
  }

  function scoreChart() {
    const [i, m] = [current, methodIndex()];
    const threshold = at(data.thresholds, m, i);
    // A bar of no height stands in for none, so that the chart always has something to stack.
    const none = [{ group: "hop 1", from: at(data.edges, data.scored[m], 0), to: at(data.edges, data.scored[m], 1), count: 0, mass: 0 }];
    const rows = bars(i, m);
    const datasets = { bars: rows.length ? rows : none, labels: own.marks(i, m), threshold: Number.isFinite(threshold) ? [{ threshold }] : [] };
    return { datasets, params: { top: tallest(datasets.bars) } };
  }

  function tellScores() {
    const [i, m] = [current, methodIndex()];
    const threshold = at(data.thresholds, m, i);
    const what = isLocal(m) ? "Calibration nodes around it with their weights; the stronger the colour, the nearer." : isGlobal(m) ? "All calibration nodes, each with weight 1." : "All calibration nodes; the threshold is not a quantile of theirs.";
    const line = Number.isFinite(threshold) ? `The line is the threshold, ${fixed(threshold)}` : "There is no finite threshold: too little weight is near";
    $("scores-text").textContent = `${what} ${line}; ${own.marksText}.`;
  }

  function tallest(rows) {
    const sums = new Map();
    for (const row of rows) sums.set(row.from, (sums.get(row.from) ?? 0) + row.mass);
    return Math.max(1e-9, ...sums.values());
  }

  function bars(i, m) {
    const rows = [];
    const s = data.scored[m];
    const bins = data.edges.shape[1] - 1;
    const add = (label, b, number, weight) => number && rows.push({ group: label, from: at(data.edges, s, b), to: at(data.edges, s, b + 1), count: number, mass: number * weight });
    for (let b = 0; b < bins; b++) {
      if (!isLocal(m)) add("all calibration nodes", b, at(data.all_histogram, s, b), 1);
      for (let k = 0; isLocal(m) && k < data.hops; k++) add(k < 7 ? `hop ${k + 1}` : "later hops", b, at(data.histogram, s, i, k, b), at(data.weights, m, k));
    }
    return rows;
  }

  // ---- finding a node -------------------------------------------------------------------------------------------

  let active = -1;
  const matchItems = () => [...$("matches").children];

  function closeMatches() {
    $("matches").hidden = true;
    $("search").setAttribute("aria-expanded", "false");
    $("search").removeAttribute("aria-activedescendant");
    active = -1;
  }

  function openMatches() {
    const typed = $("search").value;
    const found = candidates().filter((i) => data.names[i].startsWith(typed) || data.names[i].startsWith(typed.trim())).slice(0, 8);
    $("matches").replaceChildren(...found.map((i) => {
      const item = make("li", { role: "option", id: `match-${i}`, "aria-selected": "false" }, data.names[i]);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); show(i); });
      return item;
    }));
    $("matches").hidden = !found.length;
    $("search").setAttribute("aria-expanded", String(found.length > 0));
    active = -1;
  }

  function moveMatch(step) {
    if ($("matches").hidden) openMatches();
    const items = matchItems();
    if (!items.length) return;
    active = (active + step + items.length) % items.length;
    items.forEach((item, r) => item.setAttribute("aria-selected", String(r === active)));
    $("search").setAttribute("aria-activedescendant", items[active].id);
  }

  function searchKey(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); moveMatch(event.key === "ArrowDown" ? 1 : -1); }
    // Where the list is open, Escape closes it and leaves the text alone.
    if (event.key === "Escape" && !$("matches").hidden) { event.preventDefault(); closeMatches(); }
  }

  function submit(event) {
    event.preventDefault();
    const typed = $("search").value;
    const chosen = matchItems()[active]?.textContent ?? (position.has(typed) ? typed : typed.trim());
    if (position.has(chosen)) return show(position.get(chosen));
    closeMatches();
    const here = decoded(location.pathname.split("/").pop()) || "report.html";
    $("search-message").textContent = `Node ${chosen} is not among the ${group(data.names.length)} nodes in this page; ask: napsets inspect --node ${quoted(chosen)} --like ${quoted(here)} and the files it was made from`;
  }

  function step(direction) {
    const list = candidates();
    if (!list.length) return;
    const here = list.indexOf(current);
    show(list[here < 0 ? 0 : (here + direction + list.length) % list.length]);
  }

  // ---- start ----------------------------------------------------------------------------------------------------

  function listen() {
    for (const box of document.querySelectorAll('input[name="shown"]')) box.addEventListener("change", showMethods);
    for (const details of document.querySelectorAll("[data-numbers]")) details.addEventListener("toggle", () => numbers(details));
    for (const button of document.querySelectorAll('input[name="method"]')) button.addEventListener("change", refresh);
    own.listen();
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
