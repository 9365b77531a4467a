"use strict";
(() => {
  /* The page of a running service. All text of other people (ids, class names) is set as text, never as markup. */
  const $ = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const svg = (tag, attributes = {}, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const group = (value) => value.toLocaleString("en-US");
  const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
  /* Characters that cannot be seen, or that turn the direction of others, are spelled out: an id cannot pass for another. */
  const visible = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u115f\u1160\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufeff\uffa0]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));

  // ---- asking the service ------------------------------------------------------------------------------------------

  let token = sessionStorage.getItem("napsets-token");

  async function ask(path) {
    const response = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
    const answer = await response.json();
    if (response.status === 401) {
      $("login").hidden = false;
      throw new Error(token ? "That is not the token of this service." : "This service needs its token.");
    }
    if (!response.ok) throw new Error(answer.error ?? `status ${response.status}`);
    $("login").hidden = true;
    return answer;
  }

  $("login").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value;
    sessionStorage.setItem("napsets-token", token);
    renew();
  });

  // ---- charts ------------------------------------------------------------------------------------------------------

  const HEIGHT = 220, LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 30;

  /* Round numbers from low to high, about four apart, so that the axis can be read. */
  function ticks(low, high) {
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((value) => value >= rough * 0.999);
    const [from, to] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
    return Array.from({ length: to - from + 1 }, (_, i) => (from + i) * step);
  }

  /* Draw lines over the same horizontal axis: {xs, lines: [[values, class]], band: [lower, upper], target, format}. */
  function plot(place, { xs, lines, band, target, format, floor, ceiling }) {
    const WIDTH = Math.max(260, Math.round(place.clientWidth) || 480);
    /* An interval of few labels is wide; it is cut off where it would flatten all the rest. */
    const narrow = (band ?? []).map((line) => line.filter((_, i) => band[1][i] - band[0][i] < 0.25));
    const values = [...lines.map(([line]) => line), ...narrow].flat().filter((value) => Number.isFinite(value));
    if (!xs.length || !values.length) {
      place.replaceChildren(make("p", {}, "Nothing yet: no label has arrived."));
      return;
    }
    let [low, high] = [Math.min(...values, target ?? Infinity), Math.max(...values, target ?? -Infinity)];
    if (floor !== undefined) low = Math.min(low, floor);
    if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
    const grid = ticks(low, high);
    [low, high] = [grid[0], Math.min(grid[grid.length - 1], ceiling ?? Infinity)];
    const [first, last] = [xs[0], xs[xs.length - 1]];
    const x = (value) => LEFT + ((value - first) / Math.max(last - first, 1)) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - Math.min(Math.max(value, low), high)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const path = (line) => line.map((value, i) => (Number.isFinite(value) ? `${i && Number.isFinite(line[i - 1]) ? "L" : "M"}${x(xs[i]).toFixed(1)},${y(value).toFixed(1)}` : "")).join("");
    const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": place.parentElement.querySelector("h3").textContent });
    for (const value of grid.filter((tick) => tick <= high + 1e-9)) {
      drawing.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
      drawing.append(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)));
    }
    drawing.append(svg("text", { x: LEFT, y: HEIGHT - 8 }, group(first)), svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${group(last)} labels`));
    if (band) {
      const there = xs.map((_, i) => i).filter((i) => Number.isFinite(band[0][i]) && Number.isFinite(band[1][i]));
      const points = [...there.map((i) => `${x(xs[i])},${y(band[0][i])}`), ...there.reverse().map((i) => `${x(xs[i])},${y(band[1][i])}`)];
      drawing.append(svg("polygon", { class: "band", points: points.join(" ") }));
    }
    if (target !== undefined) drawing.append(svg("line", { class: "target", x1: LEFT, x2: WIDTH - RIGHT, y1: y(target), y2: y(target) }));
    for (const [line, kind] of lines) drawing.append(svg("path", { class: `line ${kind}`, d: path(line) }));
    place.replaceChildren(drawing);
  }

  const SUPERSCRIPTS = { "-": "⁻", ".": "·", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (value) => (value === 0 ? "1" : `10${[...String(Number(value.toFixed(2)))].map((digit) => SUPERSCRIPTS[digit]).join("")}`);

  /* The average over the last points, each of which stands for all labels since the one before. */
  function moving(xs, sizes, window) {
    const totals = [0];
    sizes.forEach((size, i) => totals.push(totals[i] + size * (xs[i] - (xs[i - 1] ?? 0))));
    return xs.map((last, i) => (totals[i + 1] - totals[Math.max(0, i + 1 - window)]) / (last - (xs[i - window] ?? 0)));
  }

  function draw(status) {
    const past = status.history, xs = past.judged;
    $("coverage-text").textContent = `Share of labels that were in the set, with an interval that holds at all times together (95 %). Dashed: the promised ${percent(1 - status.alpha)}.`;
    plot($("plot-coverage"), { xs, lines: [[past.coverage, ""]], band: [past.lower, past.upper], target: 1 - status.alpha, format: (value) => `${Number((100 * value).toFixed(1))} %`, ceiling: 1 });
    const window = Math.ceil(xs.length / 20), labels = xs.length ? xs[xs.length - 1] - (xs[xs.length - 1 - window] ?? 0) : 0;
    $("size-text").textContent = labels > 1 ? `Moving average over ${group(labels)} labels.` : "Of each label's set.";
    plot($("plot-size"), { xs, lines: [[moving(xs, past.size, window), ""]], format: (value) => String(Number(value.toFixed(2))), floor: 0 });
    plot($("plot-alarms"), { xs, lines: [[past.exchangeability, ""], [past.misses, "second"]], target: 2, format: power, floor: 0 });
    plot($("plot-delay"), { xs, lines: [[past.delay, ""]], format: (value) => group(Math.round(value)), floor: 0 });
  }

  // ---- figures -----------------------------------------------------------------------------------------------------

  const card = (name, value, note) => make("div", { class: "card" }, make("dt", {}, name), make("dd", { class: "value" }, value), make("dd", { class: "note" }, note));
  const ALARMS = {
    exchangeability: ["new labels differ from earlier ones", "The promise of coverage rests on labels that are alike over time. Look for a change in the data or in the model, and train the model again.", "New labels look like earlier ones."],
    coverage: ["coverage is below the promise", "Sets miss the truth more often than promised. Train and calibrate again, or use a level that follows drift.", "Sets contain the truth as often as promised, as far as labels show."],
  };

  function show(status) {
    const judged = status.judged, [low, high] = judged.coverage_interval;
    $("summary").textContent = judged.labels
      ? `Of ${group(judged.labels)} labels that have arrived, ${percent(judged.coverage)} were in the set that their node had before; ${percent(1 - status.alpha)} is the promise.`
      : "No label has judged a set yet.";
    $("cards").replaceChildren(
      card("Nodes", group(status.nodes), `${group(status.edges)} edges`),
      card("Labels", group(status.labels), `${group(status.events)} events in the log`),
      card("Coverage so far", percent(judged.coverage), judged.labels ? `between ${percent(low)} and ${percent(high)}` : ""),
      card("Average set size", fixed(judged.mean_size), judged.labels ? "of the sets that labels judged" : ""),
    );
    $("alarms").replaceChildren(...Object.entries(judged.alarms).map(([name, alarm]) => {
      const rings = alarm.rang !== null, [title, ringing, quiet] = ALARMS[name] ?? [name, "", ""];
      return make("div", { class: rings ? "card rings" : "card" }, make("strong", {}, rings ? `Alarm after ${group(alarm.rang)} labels: ${title}` : `No alarm (${name})`), make("p", {}, rings ? ringing : judged.labels ? quiet : "No label has arrived yet."));
    }));
    draw(status);
  }

  let waiting = false;

  async function renew() {
    if (waiting || document.hidden) return;
    waiting = true;
    try {
      const status = await ask("status?history=true");
      $("main").hidden = false;
      show(status);
      document.documentElement.dataset.ready = "true";
    } catch (error) {
      $("summary").textContent = $("login").hidden ? `The service does not answer: ${error.message}` : error.message;
    }
    waiting = false;
  }

  // ---- one node ----------------------------------------------------------------------------------------------------

  const listed = (labels) => (labels.length ? labels.map(visible).join(", ") : "nothing: no label fits");

  $("find").addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = $("alpha").value ? `?alpha=${encodeURIComponent($("alpha").value)}` : "";
    try {
      const node = await ask(`nodes/${encodeURIComponent($("id").value)}${query}`);
      const TEXT = ["Node", "Label"];
      const table = (head, rows) => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col", ...(TEXT.includes(name) ? { class: "words" } : {}) }, name)))), make("tbody", {}, ...rows)));
      $("explained").replaceChildren(
        make("h3", {}, `${visible(node.node)}: ${listed(node.labels)}`),
        make("p", {}, node.reason),
        table(["Label", "Probability", "p-value", "In the set"], node.candidates.sort((one, other) => other.p_value - one.p_value).map((row) => make("tr", { class: row.member ? "inside" : "outside" }, make("th", { scope: "row" }, visible(row.label)), make("td", {}, fixed(row.probability, 3)), make("td", {}, fixed(row.p_value, 3)), make("td", {}, row.member ? "yes" : "no")))),
        ...(node.neighbours.length ? [make("h3", {}, "Labelled nodes within two hops"), table(["Node", "Label", "Hops"], node.neighbours.map((row) => make("tr", {}, make("th", { scope: "row" }, visible(row.node)), make("td", { class: "words" }, visible(row.label)), make("td", {}, String(row.hops)))))] : []),
      );
    } catch (error) {
      $("explained").replaceChildren(make("p", {}, error.message));
    }
  });

  renew();
  setInterval(renew, 2000);
  document.addEventListener("visibilitychange", renew);
})();
