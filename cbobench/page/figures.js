"use strict";
// Figures: a panel is a title, traces for the plotting library, and the rows of its CSV.

const isDark = () => document.documentElement.dataset.theme === "dark";
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const MANY = 12; // curves that can be told apart; of more there is no legend and no marker
const BANDS = 4; // more bands hide what is below
const panels = new Set();
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) target.panel.near = isIntersecting;
  drawNext();
}, { rootMargin: "200px" });
let waiting = false;

/** Draws what is out of date, one panel at a time, those in sight first: in between the page answers. */
function drawNext() {
  const left = [...panels].filter((panel) => panel.old && panel.figure.isConnected);
  document.getElementById("main").setAttribute("aria-busy", String(left.length > 0));
  if (waiting || !left.length) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    const now = left.filter((panel) => panel.old && panel.figure.isConnected);
    (now.find((panel) => panel.near) || now[0])?.draw();
    drawNext();
  });
}

/** Draws everything again that is on the page. */
function redraw() {
  for (const panel of panels) {
    panel.old = true;
    if (!panel.figure.isConnected) Plotly.purge(panel.plot);
  }
  drawNext();
}

let pointed = null; // labels of the curves that are shown alone

/** Shows curves of some labels alone, all of them with null. */
function highlight(labels) {
  pointed = labels && new Set(labels);
  for (const panel of panels) if (panel.figure.isConnected && !panel.old) panel.highlight();
}

/** Numbers that are packed as float32, or as float64 after a colon, in rows of one length. */
function unpacked(text, width) {
  const wide = text.startsWith(":");
  const bytes = Uint8Array.from(atob(wide ? text.slice(1) : text), (letter) => letter.charCodeAt(0));
  const values = new (wide ? Float64Array : Float32Array)(bytes.buffer);
  const rows = [];
  for (let i = 0; i < values.length; i += width) {
    rows.push(Array.from(values.subarray(i, i + width), (v) => (Number.isFinite(v) ? Number(v.toPrecision(7)) : null)));
  }
  return rows;
}

/** Colours of paper, text and grid. */
function theme(dark) {
  const [paper, text, grid] = dark ? ["#171a1f", "#e8eaed", "#3a404a"] : ["#ffffff", "#1b1e23", "#dfe3e8"];
  const axis = { gridcolor: grid, linecolor: text, zerolinecolor: grid, ticks: "outside", tickcolor: text, automargin: true };
  return { paper, text, axis };
}

/** How many lines the legend takes: the library gives all names the width of the longest. */
function legendLines(traces, width) {
  const names = traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name.length);
  return Math.ceil(names.length / Math.max(1, Math.floor((width - 24) / (58 + 6.7 * Math.max(0, ...names)))));
}

/** The library's layout for a panel in one theme. */
function layoutOf(made, dark, width, tall, most = Infinity) {
  const { paper, text, axis } = theme(dark);
  const named = made.traces.filter((trace) => trace.showlegend !== false).length;
  const showlegend = made.layout.showlegend !== false && named <= most;
  const below = showlegend ? 19 * legendLines(made.traces, width) + 4 : 0;
  const axisOf = (own) => ({ ...axis, ...own, title: { ...own.title, font: { size: 13 }, standoff: 8 } });
  return {
    paper_bgcolor: paper, plot_bgcolor: paper, height: tall + below, autosize: true,
    font: { family: "system-ui, sans-serif", size: 13, color: text },
    margin: { l: 56, r: 14, t: 14, b: 56 + below }, hovermode: "closest",
    hoverlabel: { bgcolor: paper, bordercolor: text, font: { color: text } },
    legend: { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", font: { size: 12 }, bgcolor: "rgba(0,0,0,0)" },
    dragmode: "zoom",
    ...made.layout, showlegend,
    xaxis: axisOf(made.layout.xaxis), yaxis: axisOf(made.layout.yaxis),
  };
}

/** A number for tooltips. */
const said = (value) => (value === null || value === undefined ? "–" : typeof value === "string" ? value
  : Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3) ? value.toExponential(3) : String(Number(value.toPrecision(4))));

/** A name for the legend, which says where seeds are missing, and what more there is. */
function legendName(label, some, more = []) {
  const words = [...(some.n === some.expected ? [] : [`${some.n} of ${some.expected}`]), ...more];
  return plain(label + (words.length ? ` (${words.join(", ")})` : ""));
}

/** A line of the legend of which nothing is drawn. */
const unseen = (name, mode, style) => ({ type: "scatter", mode, name, x: [null], y: [null], ...style });

/** What a note says of some, nothing where there are none. */
const listed = (labels, words) => (labels.length ? `${words}: ${labels.join(", ")}` : "");
const noted = (...parts) => parts.filter(Boolean).join("; ");
const drawnOf = (some, all) => (some.length < all.length ? `${some.length} of ${all.length} algorithms are chosen` : "");
const offScale = (labels, one) => listed(labels, `${labels.length} ${one}${labels.length === 1 ? "" : "s"} with values ≤ 0, which are not on this scale`);

/** Words in lines of at most so many letters. */
function wrapped(text, most) {
  const made = [""];
  for (const word of text.split(" ")) {
    const longer = `${made.at(-1)} ${word}`.trim();
    if (longer.length > most && made.at(-1)) made.push(word); else made[made.length - 1] = longer;
  }
  return made;
}

/** In how many seeds, and which cells are stale: [[label, { n, expected, stale }], ...] in words. */
function seedsOf(shown) {
  const n = [...new Set(shown.map(([, some]) => `${some.n} of ${some.expected}`))].join(", ");
  const stale = shown.filter(([, some]) => some.stale).map(([label]) => label);
  const who = stale.length === shown.length ? "all" : stale.join(", ");
  return `n = ${n}${stale.length ? `; with stale cells: ${who}` : ""}`;
}

const tint = (colour, share) => `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${share})`;

/** What line and markers of an algorithm look like. */
function lookOf(look, dark) {
  const colour = dark ? look.dark : look.light;
  return { colour, line: { color: colour, dash: look.dash, width: look.width },
    marker: { color: colour, symbol: look.symbol, size: 8, line: { color: colour, width: 1.5 } } };
}

/** What the library knows the line of an algorithm by. */
const uidOf = (label) => `a${[...algorithms.keys()].indexOf(label)}`;

/** A figure with its tools. `build(dark)` gives { traces, layout, csv, note }, `file()` the name of what is downloaded. */
function panelOf(title, file, build) {
  const plot = el("div", { class: "plot", tabindex: "0", role: "img", "aria-label": title, onkeydown: keys });
  const note = el("p", { class: "note" });
  const button = (name, act, about) => el("button", { type: "button", onclick: act, "aria-label": `${about}: ${title}` }, name);
  const image = (format) => {
    const made = build(false); // on white, whatever the theme: it goes into papers
    const about = wrapped(made.note || "", 115).map(plain);
    const words = { text: plain(title), font: { size: 15 }, x: 0.5, y: 1, yref: "container", yanchor: "top", pad: { t: 14 },
      subtitle: { text: about.join("<br>"), font: { size: 11 } } };
    const layout = { ...layoutOf(made, false, 760, 440 + 15 * about.length), width: 760, title: words };
    layout.margin = { ...layout.margin, t: 48 + 15 * about.length };
    const size = { width: layout.width, height: layout.height, scale: format === "png" ? 2 : 1 };
    return Plotly.downloadImage({ data: made.traces, layout }, { format, filename: file(), ...size });
  };
  const figure = el("figure", { class: "panel" }, el("figcaption", {}, title), plot, note,
    el("div", { class: "tools" },
      button("SVG", () => image("svg"), "download as SVG"), button("PNG", () => image("png"), "download as PNG"),
      button("CSV", () => download(`${file()}.csv`, csvOf(build(false).csv)), "download the numbers"),
      button("Reset zoom", () => Plotly.relayout(plot, { "xaxis.autorange": true, "yaxis.autorange": true }), "show all again")));
  const panel = { figure, plot, near: false, old: true };
  panel.draw = () => {
    panel.old = false;
    const made = build(isDark());
    const layout = layoutOf(made, isDark(), plot.clientWidth || 480, 330, MANY);
    layout.uirevision = file();
    plot.style.height = `${layout.height}px`;
    note.textContent = noted(made.note, layout.showlegend || made.layout.showlegend === false ? "" : `no legend of more than ${MANY}: point at a curve`);
    plot.setAttribute("aria-label", `${title}. ${made.note || ""} The CSV below has its numbers.`);
    const config = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false };
    if (plot._fullLayout && plot._fullLayout.showlegend !== layout.showlegend) Plotly.purge(plot); // it keeps a legend's room
    const first = !plot._fullLayout;
    Plotly.react(plot, made.traces, layout, config);
    if (first) {
      plot.on("plotly_hover", ({ points }) => points[0].data.meta && highlight([points[0].data.meta]));
      plot.on("plotly_unhover", () => highlight(null));
    }
    panel.highlight();
  };
  panel.highlight = () => {
    plot.classList.toggle("focused", pointed !== null);
    for (const { uid, meta } of pointed ? plot.data : []) {
      plot.querySelector(`.trace${uid}`)?.classList.toggle("focus", pointed.has(meta));
    }
  };
  function keys(event) { // + and - zoom, arrows move, 0 shows all
    const moves = { "+": [0.2, -0.2], "=": [0.2, -0.2], "-": [-0.33, 0.33], ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2] };
    if (event.key === "0") Plotly.relayout(plot, { "xaxis.autorange": true, "yaxis.autorange": true });
    else if (moves[event.key] && plot._fullLayout) {
      const [low, high] = plot._fullLayout.xaxis.range.map(Number);
      const [a, b] = moves[event.key].map((share) => share * (high - low));
      Plotly.relayout(plot, { "xaxis.range": [low + a, high + b] });
    } else return;
    event.preventDefault();
  }
  plot.panel = panel;
  panels.add(panel);
  near.observe(plot);
  return panel;
}

/** A bar beyond the last value of a curve, where no other one has its own. */
function endBar(x, [centre, low, high], color) {
  const part = (end) => [end === null ? 0 : Math.abs(end - centre)];
  return { type: "scatter", mode: "markers", showlegend: false, hoverinfo: "skip", x: [x], y: [centre], marker: { opacity: 0 },
    error_y: { type: "data", symmetric: false, array: part(high), arrayminus: part(low), color, thickness: 1.5, width: 3 } };
}

/** Curves of one metric on one problem of one run. */
function curvePanel(run, problem, state, dark) {
  const metric = DATA.metrics[state.metric];
  const traces = [], csv = [], counts = [], few = [], absent = [], none = [], worst = [], undefinedIn = [], late = [], below = [];
  const middle = state.view === "mean" ? "mean" : "median";
  const bars = { mean: "95 % interval", median: "quartiles" }[middle];
  const seconds = state.x === "seconds", times = seconds ? ["t", "seconds"] : ["t"];
  csv.push(state.view === "seeds" ? ["run", "problem", "algorithm", "seed", ...times, state.metric, "n", "expected"]
    : ["run", "problem", "algorithm", ...times, middle, "low", "high", "n", "expected", "stale"]);
  let least = Infinity;
  const asked = run.pairs.filter((pair) => pair.problem === problem);
  const chosen = asked.filter((pair) => state.algorithms.has(run.algorithms[pair.algorithm].label));
  const many = chosen.length > MANY;
  for (const pair of chosen) {
    const look = run.algorithms[pair.algorithm];
    const { colour, line, marker } = lookOf(look, dark);
    counts.push([look.label, pair]);
    const scale = seconds ? pair.seconds : 1;
    if (!pair.curves[state.metric] || scale === null) {
      (pair.n ? none : absent).push(look.label);
      const mode = state.view === "seeds" ? "lines" : "lines+markers";
      traces.push(unseen(legendName(look.label, pair, pair.n ? [scale === null ? "no seconds" : `no ${metric.symbol}`] : []), mode, { line, marker }));
      continue;
    }
    const t = run.rounds[state.view === "seeds" ? pair.seeds_t : pair.t], at = t.map((round) => scale * round);
    const when = seconds ? "%{x:.3g} s" : "t = %{x:,}";
    const same = { uid: uidOf(look.label), meta: look.label };
    const lacking = pair.lacking[state.metric];
    const known = lacking ? [`${metric.symbol} in ${pair.n - lacking} of ${pair.n}`] : [];
    const name = legendName(look.label, pair, known);
    const seeds = [`n = ${pair.n} of ${pair.expected}`, ...known].join(", ");
    if (state.view === "seeds") {
      const values = unpacked(pair.by_seed[state.metric], t.length);
      const x = [], y = [], text = [];
      values.forEach((row, i) => {
        row.forEach((value, k) => {
          x.push(at[k]); y.push(value); text.push(`seed ${pair.seeds[i]}`);
          csv.push([run.label, run.problems[problem], look.label, pair.seeds[i], t[k], ...(seconds ? [at[k]] : []), value, pair.n, pair.expected]);
        });
        x.push(null); y.push(null); text.push("");
      });
      const part = pair.seeds.length < pair.n ? `, ${pair.seeds.length} shown` : "";
      if (part) few.push(look.label);
      if (y.some((value) => value !== null && value <= 0)) below.push(look.label);
      if (lacking) none.push(`${look.label} (${lacking} of ${pair.n} ${pair.n === 1 ? "seed" : "seeds"})`);
      traces.push({ type: "scatter", mode: "lines", ...same, name, x, y, text, opacity: 0.45, line: { ...line, width: 1 },
        hovertemplate: `%{fullData.name}, %{text}<br>${when}: %{y:.4g}<br>${seeds}${part}<extra></extra>` });
      continue;
    }
    const [centre, low, high] = unpacked(pair.curves[state.metric], t.length).slice(middle === "median" ? 0 : 3);
    t.forEach((round, k) => csv.push([run.label, run.problems[problem], look.label, round, ...(seconds ? [at[k]] : []), centre[k], low[k], high[k], pair.n, pair.expected, pair.stale]));
    const lost = `${look.label} (no value in ${lacking} of ${pair.n} ${pair.n === 1 ? "seed" : "seeds"})`;
    if (centre.at(-1) === null) undefinedIn.push(lost);
    else if (centre.includes(null)) late.push(look.label);
    if (lacking && centre.at(-1) !== null) worst.push(lost);
    if (centre.some((value) => value !== null && value <= 0)) below.push(look.label);
    const there = t.map((_, k) => k).filter((k) => low[k] !== null && high[k] !== null);
    for (const k of there) for (const v of [low[k], centre[k], high[k]]) if (v > 0) least = Math.min(least, v);
    if (there.length && chosen.length <= BANDS) {
      traces.push({ type: "scatter", mode: "lines", uid: `${same.uid}b`, meta: look.label, legendgroup: name, showlegend: false, hoverinfo: "skip", band: true,
        x: [...there.map((k) => at[k]), ...there.map((k) => at[k]).reverse()],
        y: [...there.map((k) => high[k]), ...there.map((k) => low[k]).reverse()],
        fill: "toself", fillcolor: tint(colour, 0.16), line: { width: 0 } });
    }
    traces.push({ type: "scatter", mode: many ? "lines" : "lines+markers", ...same, name, legendgroup: name, x: at, y: centre, line,
      marker: { ...marker, maxdisplayed: 8 }, customdata: t.map((_, k) => [said(low[k]), said(high[k])]),
      hovertemplate: `%{fullData.name}<br>${when}<br>${middle} %{y:.4g} [%{customdata[0]}, %{customdata[1]}]<br>${seeds}<extra></extra>` });
    if (chosen.length > BANDS && !many && centre.at(-1) !== null) {
      const beyond = at.at(-1) * (1 + 0.012 * counts.length);
      traces.push({ ...endBar(beyond, [centre, low, high].map((ends) => ends.at(-1)), colour), band: true, uid: `${same.uid}e`, meta: look.label, legendgroup: name });
    }
  }
  if (state.ylog) {
    for (const trace of traces) if (trace.band) trace.y = trace.y.map((v) => (v > 0 ? v : least)); // a band may reach 0
  }
  traces.sort((a, b) => (b.band || 0) - (a.band || 0)); // bands behind lines
  const what = state.view === "seeds" ? "a line per seed" : counts.every(([, pair]) => pair.n < 2) ? "single seeds, without an interval"
    : many ? `${middle}; ${bars} are in the CSV` : `${middle} and ${bars}${chosen.length > BANDS ? " in the end" : ""}`;
  const spread = seconds ? "t is shown as CPU seconds: t times what a round took on average, the median of the seeds" : "";
  return {
    traces, csv,
    note: !counts.length ? drawnOf(chosen, asked) || "nothing was asked for here" : noted(`${what}, ${run.ends[problem]}, ${seedsOf(counts)}`, spread,
      drawnOf(chosen, asked), listed(absent, "no good cell"), listed(none, `no value of ${metric.symbol}`),
      listed(undefinedIn, `${middle} undefined in the end`), listed(worst, "to a median a seed without a value is worse than any"),
      listed(late, `drawn from where ${middle === "mean" ? "all seeds have" : "more than half of the seeds have"} a value`),
      few.length ? "some seeds of each are shown" : "", state.ylog ? offScale(below, "curve") : ""),
    layout: {
      xaxis: { title: { text: seconds ? "CPU time of a cell, s" : "Round t" }, type: state.xlog ? "log" : "linear" },
      yaxis: { title: { text: metric.label }, type: state.ylog ? "log" : "linear", ...(state.ylog ? { exponentformat: "power" } : { rangemode: "tozero" }) },
    },
  };
}
