
  // ---- intervals of numbers -------------------------------------------------------------------------------------

  function written(value, digits = 4) {
    if (value === null || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const size = Math.abs(value);
    const text = size >= 1000 ? Math.round(size).toLocaleString("en-US") : String(Number(size.toPrecision(digits)));
    return value < 0 && Number(text) !== 0 ? `−${text}` : text;
  }

  const signed = (value) => (value > 0 ? `+${written(value, 3)}` : written(value, 3));

  const kind = {
    sizeKey: "width",
    sizeTitle: "Mean width",
    size: written,
    setLabel: "Prediction interval",
    ballText: (row) => `mean target ${written(row.target)}`,
    neighbourText: (row) => `target ${written(data.neighbour_target[row])}`,
    marksText: "the triangle is this node's own target",
    marks: targetMark,
    covers: (i, m) => at(data.lower, m, i) <= data.target[i] && data.target[i] <= at(data.upper, m, i),
    truthText: (i) => `target, ${written(data.target[i])}`,
    chips: (i, m) => [make("li", {}, endsText(i, m))],
    explanation: (i, m) => [make("p", { id: "node-reason" }, data.threshold_text[m][i])],
    show(i, m) {
      showIntervals(i);
      showOutputs(i, m);
      showLineText(i, m);
    },
    reach: "",
    evidenceText: (e) => `${data.sentences[e][0].toUpperCase()}${data.sentences[e].slice(1)}`,
    voiceHead: () => ["Node", "Target", "Above the guess", "Hop", ...data.columns.map((name) => `Moves ${name} by`)],
    voiceRow: (e, i, v, row) => [data.neighbour_names[row], written(data.neighbour_target[row]), signed(at(data.voice_residual, e, i, v)), String(at(data.voice_hop, e, i, v)),
      ...data.columns.map((_, c) => signed(at(data.voice_shifts, e, i, v, c)))],
    listen() {},
  };

  live.line = lineChart;

  function endsText(i, m) {
    return Number.isFinite(at(data.thresholds, m, i)) ? `${written(at(data.lower, m, i))} to ${written(at(data.upper, m, i))}` : "the whole line";
  }

  function showIntervals(i) {
    const rows = data.methods.map((method, m) =>
      [method, written(at(data.lower, m, i)), written(at(data.upper, m, i)), written(at(data.upper, m, i) - at(data.lower, m, i)), kind.covers(i, m) ? "covers" : "misses"]);
    fillTable($("node-intervals"), ["Method", "From", "To", "Width", "The truth"], rows, data.methods.map((_, m) => (kind.covers(i, m) ? "inside" : "outside")));
  }

  function showOutputs(i, m) {
    const s = data.scored[m];
    const columns = data.columns.map((_, c) => c);
    fillTable($("node-outputs"), ["", ...data.columns], [
      ["Model", ...columns.map((c) => written(at(data.model, i, c)))],
      ["With evidence", ...columns.map((c) => written(at(data.outputs, s, i, c)))]]);
  }

  function targetMark(i, m) {
    // A score beyond those of all calibration nodes stands at the end of the axis.
    const score = Math.min(Math.max(at(data.scores, data.scored[m], i), Math.min(...data.edges)), Math.max(...data.edges));
    const inside = kind.covers(i, m);
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
    const add = (line, values) => {
      // Two quantiles are a span, a prediction is a point, and a spread has no place on the line.
      if (data.columns.includes("lower")) spans.push({ line, from: Math.min(...values), to: Math.max(...values), kind: "model", text: values.map((value) => written(value)).join(" to ") });
      else points.push({ line, value: values[0], text: written(values[0]) });
    };
    const row = (array, ...index) => data.columns.map((_, c) => at(array, ...index, c));
    add("Model", row(data.model, i));
    if (data.informed[s] >= 0) add("With evidence", row(data.outputs, s, i));
    const [from, to] = [at(data.lower, m, i), at(data.upper, m, i)];
    const known = [data.target[i], from, to, ...points.map((point) => point.value), ...spans.flatMap((span) => [span.from, span.to])].filter(Number.isFinite);
    const room = 0.06 * (Math.max(...known) - Math.min(...known)) || 0.5;
    const [low, high] = [Math.min(...known) - room, Math.max(...known) + room];
    spans.push({ line: "Interval", from: Math.max(from, low), to: Math.min(to, high), kind: kind.covers(i, m) ? "covers" : "misses", text: endsText(i, m) });
    return { datasets: { spans, points, truth: [{ value: data.target[i] }] }, params: { low, high } };
  }

  function showLineText(i, m) {
    const two = data.columns.includes("lower");
    const evidence = data.informed[data.scored[m]] >= 0 ? ", and the same after the targets around it are taken as evidence" : "";
    $("line-text").textContent = `The interval of ${data.methods[m]}, ${two ? "the model's own quantiles" : "the model's own prediction"}${evidence}. The dashed line is the truth, ${written(data.target[i])}; dots are targets of labelled nodes around it, as far as they are drawn below.`;
  }
