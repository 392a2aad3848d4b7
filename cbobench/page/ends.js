"use strict";
// Panels of what cells came to: the plane of two metrics, ranks, profiles.

/** Two metrics against each other in the end. */
function planePanel(run, problem, state, dark) {
  const start = state.final === "median" ? 1 : 0;
  const ends = (values) => (start ? values.slice(1, 4) : [values[0], values[4], values[5]]);
  const csv = [["run", "problem", "algorithm", ...["x", "y"].flatMap((a) => [a, `${a}_low`, `${a}_high`]), "n", "expected", "stale"]];
  const traces = [], beyond = [], counts = [];
  for (const row of run.finals) {
    const look = run.algorithms[row.algorithm];
    if (row.problem !== problem || !state.algorithms.has(look.label)) continue;
    const [across, up] = [row.values[state.across], row.values[state.up]];
    if (!across || !up) continue;
    const [x, y] = [ends(across), ends(up)];
    csv.push([run.label, run.problems[problem], look.label, ...x, ...y, row.n, row.expected, row.stale]);
    counts.push([look.label, row]);
    if (typeof x[0] !== "number" || typeof y[0] !== "number") { beyond.push(look.label); continue; }
    const { colour, marker } = lookOf(look, dark);
    const bar = ([centre, low, high]) => ({
      type: "data", symmetric: false, array: [typeof high === "number" ? high - centre : 0],
      arrayminus: [typeof low === "number" ? centre - low : 0], color: colour, thickness: 1.5, width: 4 });
    traces.push({ type: "scatter", mode: "markers", name: legendName(look.label, row), x: [x[0]], y: [y[0]],
      error_x: bar(x), error_y: bar(y), marker: { ...marker, size: 10 },
      hovertemplate: `%{fullData.name}<br>${plain(DATA.metrics[state.across].symbol)}: ${x.map(said).join(" [")}`.replace(/ \[([^[]*)$/, ", $1]")
        + `<br>${plain(DATA.metrics[state.up].symbol)}: ${y.map(said).join(" [")}`.replace(/ \[([^[]*)$/, ", $1]") + `<br>n = ${row.n} of ${row.expected}<extra></extra>` });
  }
  const note = traces.length ? `${state.final}s with 95 % intervals, ${seedsOf(counts)}` : "nothing that is chosen has both";
  const type = state.planelog ? "log" : "linear";
  return {
    traces, csv, note: note + (beyond.length ? `; beyond any value: ${beyond.join(", ")}` : ""),
    layout: { xaxis: { title: { text: DATA.metrics[state.across].label }, type }, yaxis: { title: { text: DATA.metrics[state.up].label }, type } },
  };
}

/** Average ranks with the critical difference from the best. */
function rankPanel(run, state, dark) {
  const rows = run.ranks.filter((row) => row.metric === state.rank && row.rank !== null);
  rows.sort((a, b) => b.rank - a.rank);
  const best = Math.min(...rows.map((row) => row.rank)), gap = rows.length ? rows[0].critical_difference : null;
  const names = rows.map((row) => plain(row.algorithm_label));
  const looks = rows.map((row) => lookOf(run.algorithms[row.algorithm], dark));
  const band = gap === null ? [] : [{ type: "rect", xref: "x", yref: "paper", x0: best, x1: best + gap, y0: 0, y1: 1, line: { width: 0 }, fillcolor: dark ? "rgba(255,255,255,0.10)" : "rgba(0,0,0,0.07)", layer: "below" }];
  return {
    traces: rows.length ? [{ type: "scatter", mode: "markers", x: rows.map((row) => row.rank), y: names, showlegend: false,
      marker: { color: looks.map((look) => look.colour), symbol: looks.map((look) => look.marker.symbol), size: 11 },
      hovertemplate: `%{y}: rank %{x:.3g}<br>${rows[0].blocks} of ${rows[0].expected} blocks<extra></extra>` }] : [],
    csv: [["run", "metric", "algorithm", "rank", "critical_difference", "blocks", "expected"],
      ...rows.map((row) => [run.label, row.metric, row.algorithm_label, row.rank, gap, row.blocks, row.expected])],
    note: rows.length ? `1 is best; the band is what cannot be told from the best (critical difference ${said(gap)}, ${rows[0].blocks} of ${rows[0].expected} blocks)` : "nothing is ranked",
    layout: { shapes: band, xaxis: { title: { text: `Average rank by ${rows.length ? rows[0].symbol : ""}` } }, yaxis: { type: "category", title: { text: "" } }, showlegend: false },
  };
}

/** Shares of cells near the optimum, or of targets reached. */
function profilePanel(run, kind, state, dark) {
  const data = kind === "data";
  const traces = [], csv = [["run", "algorithm", data ? "t" : "precision", "share", "n", "expected"]];
  for (const one of run.profiles[kind]) {
    const look = run.algorithms[one.algorithm];
    one.x.forEach((x, k) => csv.push([run.label, look.label, x, one.share[k], one.n, one.expected]));
    if (!state.algorithms.has(look.label)) continue;
    const { line, marker } = lookOf(look, dark);
    traces.push({ type: "scatter", mode: "lines+markers", name: legendName(look.label, one), x: one.x, y: one.share,
      line: { ...line, shape: "hv" }, marker: { ...marker, maxdisplayed: 8 },
      hovertemplate: `%{fullData.name}<br>${data ? "t" : "x"} = %{x:.3g}: %{y:.1%}<br>n = ${one.n} of ${one.expected}<extra></extra>` });
  }
  return {
    traces, csv,
    note: data ? "share of (cell, target) pairs solved by round t; a cell that failed solves nothing" : "share of the cells asked for with a final simple regret of at most x |f*|",
    layout: {
      xaxis: { type: "log", title: { text: data ? "Round t" : "Precision x, in units of |f*|" }, exponentformat: "power" },
      yaxis: { range: [0, 1.03], tickformat: ".0%", title: { text: data ? "Targets reached" : "Cells with r ≤ x |f*|" } },
    },
  };
}
