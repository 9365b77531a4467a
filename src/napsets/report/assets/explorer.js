  /* The explorer shows numbers that the library computed, and computes none of its own but sums of weights. */

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
    const values = {};
    for (const [name, value] of Object.entries(raw)) {
      if (value?.dtype === undefined) { values[name] = value; continue; }
      values[name] = new arrays[value.dtype](bytesOf(value.data).buffer);
      values[name].shape = value.shape;
    }
    return values;
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
    showVerdict(current, m);
    kind.show(current, m);
    showEvidence(current, m);
    drawNeighbourhood(current, m);
    for (const name of Object.keys(live)) redraw(name);
    showScoresText();
  }

  function showVerdict(i, m) {
    const covers = kind.covers(i, m);
    const chips = make("ul", { class: `chips ${covers ? "" : "missed"}`, id: "node-set", "aria-label": kind.setLabel }, ...kind.chips(i, m));
    const text = `${data.methods[m]} ${covers ? "covers" : "misses"} the true ${kind.truthText(i)}.`;
    $("node-verdict").replaceChildren(chips, make("p", { class: `verdict ${covers ? "covers" : "misses"}`, id: "node-covers" }, text), ...kind.explanation(i, m));
  }

  function showEvidence(i, m) {
    const e = data.informed[data.scored[m]];
    $("node-evidence").hidden = e < 0;
    if (e < 0) return;
    const columns = [...Array(data.voices.shape[2]).keys()].filter((c) => at(data.voices, e, i, c) >= 0);
    const all = at(data.speaking, e, i);
    const which = columns.length < all ? `The ${columns.length} strongest of ${group(all)}` : `All ${group(all)}`;
    $("evidence-text").textContent = `${kind.evidenceText(e)}. ${all ? `${which} that count as evidence here${kind.reach}:` : "No labelled node counts as evidence here."}`;
    fillTable($("node-voices"), kind.voiceHead(), columns.map((c) => kind.voiceRow(e, i, c, at(data.voices, e, i, c))));
    $("node-voices").hidden = !columns.length;
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
    if (!Number.isFinite(level)) return `${below.toFixed(2)} of ${total.toFixed(2)}; too few labels were held out to set a level`;
    return `${below.toFixed(2)}; needed ${(level * (1 + total)).toFixed(2)}, ${level.toFixed(3).replace(/0+$/, "")} × (1 + ${total.toFixed(2)})`;
  }

  function showHops(i, m) {
    const rows = [];
    for (let k = 0; k < data.hops; k++) {
      rows.push([String(k + 1), group(at(data.hop_nodes, i, k)), group(at(data.hop_counts, data.scored[m], i, k)),
        isLocal(m) ? at(data.weights, m, k).toFixed(3) : "–", group(at(data.hop_below, m, i, k))]);
    }
    fillTable($("node-hops"), ["Hop", "Nodes", "Calibration nodes", "Weight of each", "At or below the threshold"], rows);
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
    const side = calibrates ? (score <= at(data.thresholds, m, i) ? "below" : "above") : "other";
    const dot = svg("circle", { class: side, r: calibrates ? 3 + 3 * Math.sqrt(Math.min(weight, 4)) : 3.5, cx: x, cy: y });
    const title = svg("title");
    title.textContent = `Node ${name}, hop ${hop}` + (calibrates ? `, ${kind.neighbourText(row)}, score ${score.toFixed(4)}, weight ${weight.toFixed(3)}` : ", does not calibrate");
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
    const datasets = { bars: rows.length ? rows : none, labels: kind.marks(i, m), threshold: Number.isFinite(threshold) ? [{ threshold }] : [] };
    return { datasets, params: { top: tallest(datasets.bars) } };
  }

  function showScoresText() {
    const [i, m] = [current, methodIndex()];
    const threshold = at(data.thresholds, m, i);
    const what = isLocal(m) ? "Calibration nodes around it with their weights; the stronger the colour, the nearer." : isGlobal(m) ? "All calibration nodes, each with weight 1." : "All calibration nodes; the threshold is not a quantile of theirs.";
    const line = Number.isFinite(threshold) ? `The line is the threshold, ${fixed(threshold)}` : "There is no finite threshold: too little weight is near";
    $("scores-text").textContent = `${what} ${line}; ${kind.marksText}.`;
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
    const matches = candidates().filter((i) => data.names[i].startsWith(typed) || data.names[i].startsWith(typed.trim())).slice(0, 8);
    $("matches").replaceChildren(...matches.map((i) => {
      const item = make("li", { role: "option", id: `match-${i}`, "aria-selected": "false" }, data.names[i]);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); show(i); });
      return item;
    }));
    $("matches").hidden = !matches.length;
    $("search").setAttribute("aria-expanded", String(matches.length > 0));
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
    $("search-message").textContent = `Node ${chosen} is not among the ${group(data.names.length)} nodes on this page; to see it, run: napsets inspect --node ${quoted(chosen)} --like ${quoted(here)} and the files it was made from`;
  }

  function step(direction) {
    const list = candidates();
    if (!list.length) return;
    const here = list.indexOf(current);
    show(list[here < 0 ? 0 : (here + direction + list.length) % list.length]);
  }
