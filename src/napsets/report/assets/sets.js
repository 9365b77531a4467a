
  // ---- sets of labels -------------------------------------------------------------------------------------------

  const FIRST_LABELS = 12; // of a node; a button shows the others

  const kind = {
    sizeKey: "size",
    sizeTitle: "Mean size",
    size: (value) => value.toFixed(2),
    setLabel: "Prediction set",
    ballText: (row) => `${(100 * row.class_share).toFixed(0)} % of them ${row.class}`,
    neighbourText: (row) => data.classes[data.neighbour_label[row]],
    marksText: "triangles are this node's labels",
    marks: labelMarks,
    covers: (i, m) => Boolean(at(data.member, m, i, data.label[i])),
    truthText: (i) => `label, ${data.classes[data.label[i]]}`,
    chips: labelChips,
    explanation: () => [],
    show: showLabels,
    reach: ", within two hops",
    evidenceText: (e) => `For the average label, ${data.sentences[e]}`,
    voiceHead: () => ["Node", "Label", "Hop", "Odds of its label"],
    voiceRow: (e, i, c, row) => [data.neighbour_names[row], data.classes[data.neighbour_label[row]], String(at(data.voice_hop, e, i, c)), `× ${at(data.voice_odds, e, i, c).toFixed(2)}`],
    listen() {
      $("all-labels").addEventListener("click", () => { turn($("all-labels")); refresh(); });
      $("all-classes")?.addEventListener("click", showClasses);
    },
  };

  function labelChips(i, m) {
    const inside = data.classes.map((_, y) => y).filter((y) => at(data.member, m, i, y));
    const [truth, s] = [data.label[i], data.scored[m]];
    // A set of many labels names the likeliest and the true one, and counts the others.
    const first = new Set([...inside].sort((a, b) => at(data.scores, s, i, a) - at(data.scores, s, i, b)).slice(0, 2 * FIRST_LABELS));
    const named = inside.filter((y) => first.has(y) || y === truth);
    const chips = named.map((y) => make("li", y === truth ? { class: "true" } : {}, data.classes[y]));
    if (named.length < inside.length) chips.push(make("li", { class: "others" }, `and ${inside.length - named.length} more`));
    return chips.length ? chips : [make("li", {}, "the empty set")];
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

  function showClasses() {
    const button = $("all-classes");
    const open = turn(button);
    const [first, all] = [Number(button.dataset.first), Number(button.dataset.all)];
    button.textContent = open ? `Show the ${first} classes covered least` : `Show all ${all} classes`;
    const height = specs["by-class"].height;
    views["by-class"]?.signal("limit", open ? all : first).height(open ? (height * all) / first : height).runAsync();
  }

  function labelMarks(i, m) {
    return data.classes.map((name, y) => {
      const inside = Boolean(at(data.member, m, i, y));
      return { name, score: at(data.scores, data.scored[m], i, y), inside, verdict: inside ? "in the set" : "not in the set" };
    });
  }
