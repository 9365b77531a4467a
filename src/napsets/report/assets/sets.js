
  // ---- sets of labels -------------------------------------------------------------------------------------------

  const FIRST_LABELS = 12; // of a node; a button shows the others

  const own = {
    sizeKey: "size",
    sizeTitle: "Mean size",
    size: (value) => value.toFixed(2),
    ballText: (row) => `${(100 * row.class_share).toFixed(0)} % of them ${row.class}`,
    neighbourText: (row) => data.classes[data.neighbour_label[row]],
    marksText: "triangles are this node's labels",
    marks: labelMarks,
    show(i, m) {
      showVerdict(i, m);
      showLabels(i, m);
      showEvidence(i, m);
    },
    listen() {
      $("all-labels").addEventListener("click", () => { turn($("all-labels")); refresh(); });
      $("all-classes")?.addEventListener("click", showClasses);
    },
  };

  function showVerdict(i, m) {
    const inside = data.classes.map((_, y) => y).filter((y) => at(data.member, m, i, y));
    const truth = data.label[i];
    const covers = inside.includes(truth);
    const chips = make("ul", { class: `chips ${covers ? "" : "missed"}`, id: "node-set", "aria-label": "Prediction set" });
    // A set of many labels names the likeliest and the true one, and counts the others.
    const s = data.scored[m];
    const first = new Set([...inside].sort((a, b) => at(data.scores, s, i, a) - at(data.scores, s, i, b)).slice(0, 2 * FIRST_LABELS));
    const named = inside.filter((y) => first.has(y) || y === truth);
    for (const y of named) chips.append(make("li", y === truth ? { class: "true" } : {}, data.classes[y]));
    if (named.length < inside.length) chips.append(make("li", { class: "others" }, `and ${inside.length - named.length} more`));
    if (!inside.length) chips.append(make("li", {}, "the empty set"));
    const text = `${data.methods[m]} ${covers ? "covers" : "misses"} the true label, ${data.classes[truth]}.`;
    $("node-verdict").replaceChildren(chips, make("p", { class: `verdict ${covers ? "covers" : "misses"}`, id: "node-covers" }, text));
  }

  function showLabels(i, m) {
    const s = data.scored[m];
    const order = data.classes.map((_, y) => y).sort((a, b) => at(data.scores, s, i, a) - at(data.scores, s, i, b));
    const mark = (y) => (y === data.label[i] ? `${data.classes[y]} (true)` : data.classes[y]);
    const informed = data.informed[s] >= 0; // the labels around the node have changed what the model said
    const chances = (y) => [...(informed ? [percent(at(data.model, i, y))] : []), percent(at(data.probabilities, s, i, y))];
    const rows = order.map((y) => [mark(y), ...chances(y), fixed(at(data.scores, s, i, y)), at(data.member, m, i, y) ? "in set" : "out"]);
    const head = ["Label", ...(informed ? ["Model", "Informed"] : ["Probability"]), "Score", ""];
    const every = $("all-labels").getAttribute("aria-expanded") === "true";
    const few = Math.max(FIRST_LABELS, 1 + order.indexOf(data.label[i]));
    const many = rows.length > few + 2;
    fillTable($("node-labels"), head, every || !many ? rows : rows.slice(0, few), order.map((y) => (at(data.member, m, i, y) ? "inside" : "outside")));
    $("all-labels").hidden = !many;
    $("all-labels").textContent = every ? `Show the first ${few} labels` : `Show all ${rows.length} labels`;
  }

  function showEvidence(i, m) {
    const e = data.informed[data.scored[m]];
    $("node-evidence").hidden = e < 0;
    if (e < 0) return;
    const columns = [...Array(data.voices.shape[2]).keys()].filter((c) => at(data.voices, e, i, c) >= 0);
    const rows = columns.map((c) => {
      const row = at(data.voices, e, i, c);
      return [data.neighbour_names[row], data.classes[data.neighbour_label[row]], String(at(data.voice_hop, e, i, c)), `× ${at(data.voice_odds, e, i, c).toFixed(2)}`];
    });
    const all = at(data.speaking, e, i);
    const told = all ? `${columns.length < all ? `The ${columns.length} loudest of ${group(all)}` : `All ${group(all)}`} that speak here, within two hops:` : "No labelled node speaks here.";
    $("evidence-text").textContent = `For the average label, ${data.sentences[e]}. ${told}`;
    fillTable($("node-voices"), ["Node", "Label", "Hop", "Odds of its label"], rows);
    $("node-voices").hidden = !rows.length;
  }

  function showClasses() {
    const button = $("all-classes");
    const open = turn(button);
    const [first, all] = [Number(button.dataset.first), Number(button.dataset.all)];
    button.textContent = open ? `Show the ${first} largest classes` : `Show all ${all} classes`;
    const height = specs["by-class"].height;
    views["by-class"]?.signal("limit", open ? all : first).height(open ? (height * all) / first : height).runAsync();
  }

  function labelMarks(i, m) {
    return data.classes.map((name, y) => {
      const inside = Boolean(at(data.member, m, i, y));
      return { name, score: at(data.scores, data.scored[m], i, y), inside, verdict: inside ? "in the set" : "not in the set" };
    });
  }
