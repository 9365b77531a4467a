
  // ---- intervals of numbers -------------------------------------------------------------------------------------

  function written(value, digits = 4) {
    if (value === null || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const size = Math.abs(value);
    const text = size >= 1000 ? Math.round(size).toLocaleString("en-US") : String(Number(size.toPrecision(digits)));
    return value < 0 && Number(text) !== 0 ? `−${text}` : text;
  }

  const signed = (value) => (value > 0 ? `+${written(value, 3)}` : written(value, 3));

  const own = {
    sizeKey: "width",
    sizeTitle: "Mean width",
    size: written,
    ballText: (row) => `mean target ${written(row.target)}`,
    neighbourText: (row) => `target ${written(data.neighbour_target[row])}`,
    marksText: "the triangle is this node's own target",
    marks: targetMark,
    show(i, m) {
      showVerdict(i, m);
      showIntervals(i);
      showEvidence(i, m);
      tellLine(i, m);
    },
    listen() {},
  };

  live.line = lineChart;

  const covers = (i, m) => at(data.lower, m, i) <= data.target[i] && data.target[i] <= at(data.upper, m, i);
  const ends = (i, m) => `${written(at(data.lower, m, i))} to ${written(at(data.upper, m, i))}`;

  function showVerdict(i, m) {
    const inside = covers(i, m);
    const told = Number.isFinite(at(data.thresholds, m, i)) ? ends(i, m) : "the whole line";
    const chips = make("ul", { class: `chips ${inside ? "" : "missed"}`, id: "node-set", "aria-label": "Prediction interval" }, make("li", {}, told));
    const text = `${data.methods[m]} ${inside ? "covers" : "misses"} the true target, ${written(data.target[i])}.`;
    $("node-verdict").replaceChildren(chips,
      make("p", { class: `verdict ${inside ? "covers" : "misses"}`, id: "node-covers" }, text), make("p", { id: "node-reason" }, data.told[m][i]));
  }

  function showIntervals(i) {
    const rows = data.methods.map((method, m) =>
      [method, written(at(data.lower, m, i)), written(at(data.upper, m, i)), written(at(data.upper, m, i) - at(data.lower, m, i)), covers(i, m) ? "covers" : "misses"]);
    fillTable($("node-intervals"), ["Method", "From", "To", "Width", "The truth"], rows, data.methods.map((_, m) => (covers(i, m) ? "inside" : "outside")));
  }

  function showEvidence(i, m) {
    const s = data.scored[m];
    const e = data.informed[s];
    $("node-evidence").hidden = e < 0;
    if (e < 0) return;
    const columns = data.columns.map((_, c) => c);
    fillTable($("node-outputs"), ["", ...data.columns], [
      ["Model", ...columns.map((c) => written(at(data.model, i, c)))],
      ["With evidence", ...columns.map((c) => written(at(data.outputs, s, i, c)))]]);
    const heard = [...Array(data.voices.shape[2]).keys()].filter((c) => at(data.voices, e, i, c) >= 0);
    const rows = heard.map((v) => {
      const row = at(data.voices, e, i, v);
      return [data.neighbour_names[row], written(data.neighbour_target[row]), signed(at(data.voice_residual, e, i, v)), String(at(data.voice_hop, e, i, v)),
        ...columns.map((c) => signed(at(data.voice_shifts, e, i, v, c)))];
    });
    const all = at(data.speaking, e, i);
    const told = all ? `${heard.length < all ? `The ${heard.length} strongest of ${group(all)}` : `All ${group(all)}`} that speak here:` : "No labelled node speaks here.";
    const sentence = data.sentences[e];
    $("evidence-text").textContent = `${sentence[0].toUpperCase()}${sentence.slice(1)}. ${told}`;
    fillTable($("node-voices"), ["Node", "Target", "Above the guess", "Hop", ...data.columns.map((name) => `Moves ${name} by`)], rows);
    $("node-voices").hidden = !rows.length;
  }

  function targetMark(i, m) {
    // A score beyond those of all calibration nodes stands at the end of the axis.
    const score = Math.min(Math.max(at(data.scores, data.scored[m], i), Math.min(...data.edges)), Math.max(...data.edges));
    const inside = covers(i, m);
    return [{ name: written(data.target[i]), score, inside, verdict: inside ? "in the interval" : "not in the interval" }];
  }

  function lineChart() {
    const [i, m] = [current, methodIndex()];
    const s = data.scored[m];
    const points = [];
    for (let c = 0; c < data.drawn.shape[1]; c++) {
      const row = at(data.drawn, i, c);
      const hop = at(data.drawn_hop, i, c);
      if (row < 0 || hop > 3 || Number.isNaN(data.neighbour_target[row])) continue;
      const value = data.neighbour_target[row];
      points.push({ line: `Targets at hop ${hop}`, value, text: `node ${data.neighbour_names[row]}: ${written(value)}` });
    }
    const spans = [];
    const say = (line, values, kind) => {
      // Two quantiles are a span, a prediction is a point, and a spread has no place on the line.
      if (data.columns.includes("lower")) spans.push({ line, from: Math.min(...values), to: Math.max(...values), kind, text: values.map((value) => written(value)).join(" to ") });
      else points.push({ line, value: values[0], text: written(values[0]) });
    };
    const row = (array, ...index) => data.columns.map((_, c) => at(array, ...index, c));
    say("Model", row(data.model, i), "model");
    if (data.informed[s] >= 0) say("With evidence", row(data.outputs, s, i), "model");
    const [from, to] = [at(data.lower, m, i), at(data.upper, m, i)];
    const known = [data.target[i], from, to, ...points.map((one) => one.value), ...spans.flatMap((one) => [one.from, one.to])].filter(Number.isFinite);
    const room = 0.06 * (Math.max(...known) - Math.min(...known)) || 0.5;
    const [low, high] = [Math.min(...known) - room, Math.max(...known) + room];
    const text = Number.isFinite(from) ? ends(i, m) : "the whole line";
    spans.push({ line: "Interval", from: Math.max(from, low), to: Math.min(to, high), kind: covers(i, m) ? "covers" : "misses", text });
    return { datasets: { spans, points, truth: [{ value: data.target[i] }] }, params: { low, high } };
  }

  function tellLine(i, m) {
    const two = data.columns.includes("lower");
    const evidence = data.informed[data.scored[m]] >= 0 ? `, and what the targets around it made of ${two ? "them" : "it"}` : "";
    $("line-text").textContent = `The interval of ${data.methods[m]}, ${two ? "the model's own quantiles" : "the model's own prediction"}${evidence}. The dashed line is the truth, ${written(data.target[i])}; dots are targets of labelled nodes around it, as far as they are drawn below.`;
  }
