"use strict";
// Panels of what cells came to: the plane of two metrics, ranks, profiles.

/** Two metrics against each other in the end. */
function planePanel(run, problem, state, dark) {
  const start = state.final === "median" ? 1 : 0;
  const ends = (values) => (start ? values.slice(1, 4) : [values[0], values[4], values[5]]);
  const csv = [["run", "problem", "algorithm", ...["x", "y"].flatMap((a) => [a, `${a}_low`, `${a}_high`, `${a}_defined`]), "n", "expected", "stale"]];
  const traces = [], counts = [], beyond = [], absent = [], none = [], worst = [], out = [], below = [], above = [], under = [];
  const asked = run.finals.filter((row) => row.problem === problem);
  const chosen = asked.filter((row) => state.algorithms.has(run.algorithms[row.algorithm].label));
  for (const row of chosen) {
    const look = run.algorithms[row.algorithm], { label } = look;
    const { colour, marker } = lookOf(look, dark);
    const [across, up] = [state.across, state.up].map((name) => row.values[name] || [null, null, null, null, null, null, 0]);
    const [x, y] = [ends(across), ends(up)];
    csv.push([run.label, run.problems[problem], label, ...x, across[6], ...y, up[6], row.n, row.expected, row.stale]);
    counts.push([label, row]);
    const partly = new Map([[state.across, across], [state.up, up]].filter(([, values]) => values[6] < row.n)); // once, where both are one
    const more = [...partly].map(([name, values]) => `${DATA.metrics[name].symbol} in ${values[6]} of ${row.n}`);
    const name = legendName(label, row, more);
    for (const [metric, values] of partly) {
      const left = start === 0 || !DATA.metrics[metric].censored;
      if (values[6]) (left ? out : worst).push(`${label} (${DATA.metrics[metric].symbol} in ${values[6]} of ${row.n})`);
    }
    if (typeof x[0] !== "number" || typeof y[0] !== "number") {
      (!row.n ? absent : x[0] === null || y[0] === null ? none : beyond).push(label);
      traces.push(unseen(name, "markers", { marker: { ...marker, size: 10 } }));
      continue;
    }
    if (x[0] <= 0 || y[0] <= 0) below.push(label);
    for (const [values, metric] of [[x, state.across], [y, state.up]]) {
      if (typeof values[2] === "string") above.push(`${label} (${DATA.metrics[metric].symbol})`);
      if (typeof values[1] === "string") under.push(`${label} (${DATA.metrics[metric].symbol})`);
    }
    const bar = ([centre, low, high]) => ({
      type: "data", symmetric: false, array: [typeof high === "number" ? high - centre : 0],
      arrayminus: [typeof low === "number" ? centre - low : 0], color: colour, thickness: 1.5, width: 4 });
    traces.push({ type: "scatter", mode: "markers", uid: uidOf(label), meta: label, name, x: [x[0]], y: [y[0]],
      error_x: bar(x), error_y: bar(y), marker: { ...marker, size: 10 },
      hovertemplate: `%{fullData.name}<br>${plain(DATA.metrics[state.across].symbol)}: ${x.map(said).join(" [")}`.replace(/ \[([^[]*)$/, ", $1]")
        + `<br>${plain(DATA.metrics[state.up].symbol)}: ${y.map(said).join(" [")}`.replace(/ \[([^[]*)$/, ", $1]") + `<br>${[`n = ${row.n} of ${row.expected}`, ...more].join(", ")}<extra></extra>` });
  }
  const type = state.planelog ? "log" : "linear";
  return {
    traces, csv,
    note: !counts.length ? drawnOf(chosen, asked) || "nothing was asked for here" : noted(`${state.final}s with ${aroundOf(state.final, counts)}, ${run.ends[problem]}, ${seedsOf(counts)}`,
      drawnOf(chosen, asked), listed(absent, "no good cell"), listed(none, "without a value"), listed(beyond, "beyond any value"),
      listed(out, "seeds without a value are left out"), listed(worst, "to a median a seed without a value is worse than any"),
      listed(above, "no upper end"), listed(under, "no lower end"), state.planelog ? offScale(below, "point") : ""),
    layout: { xaxis: { title: { text: DATA.metrics[state.across].label }, type }, yaxis: { title: { text: DATA.metrics[state.up].label }, type } },
  };
}

/** What stands around means or medians: an interval, or of fewer than six seeds their range and what it attains. */
function aroundOf(statistic, counts) {
  const seeds = counts.map(([, row]) => row.n);
  if (seeds.every((n) => n < 2)) return "no interval, which one seed does not give";
  const few = statistic === "mean" ? [] : [...new Set(seeds)].filter((n) => n > 1 && n < 6);
  return few.length ? `95 % intervals, or ranges below 6 seeds: ${few.map((n) => `${said(100 * (1 - 2 ** (1 - n)))} % for ${n}`).join(", ")}` : "95 % intervals";
}

/** Average ranks; a star after what no method is significantly better than. */
function rankPanel(run, state, dark) {
  const rows = run.ranks.filter((row) => row.metric === state.rank && row.rank !== null);
  rows.sort((a, b) => b.rank - a.rank);
  const left = Object.entries(run.algorithms).filter(([title]) => !rows.some((row) => row.algorithm === title)).map(([, look]) => look.label);
  const names = rows.map((row) => plain(row.algorithm_label) + (row.beaten === false ? " *" : ""));
  const looks = rows.map((row) => lookOf(run.algorithms[row.algorithm], dark));
  const of = rows.length ? `${rows[0].blocks} of ${rows[0].expected} problems` : "";
  const tested = rows.some((row) => row.beaten !== null) ? "* no method is significantly better" : "too few problems to tell who is better";
  return {
    traces: rows.length ? [{ type: "scatter", mode: "markers", x: rows.map((row) => row.rank), y: names, showlegend: false,
      marker: { color: looks.map((look) => look.colour), symbol: looks.map((look) => look.marker.symbol), size: 11 },
      hovertemplate: `%{y}: rank %{x:.3g}<br>${of}<extra></extra>` }] : [],
    csv: [["run", "metric", "algorithm", "rank", "beaten", "blocks", "expected"],
      ...rows.map((row) => [run.label, row.metric, row.algorithm_label, row.rank, row.beaten, row.blocks, row.expected])],
    note: rows.length ? `1 is best; ${tested}; ${of}, ${run.end}${left.length ? `; not ranked: ${left.join(", ")}` : ""}` : "nothing is ranked",
    layout: { xaxis: { title: { text: `Average rank by ${rows.length ? rows[0].symbol : ""}` } }, yaxis: { type: "category", title: { text: "" } }, showlegend: false },
  };
}

/** 1, 2, 5, 10, 20, ... from the first round to the last. */
function roundTicks(at) {
  const decades = Array.from({ length: 13 }, (_, i) => 10 ** (i - 6));
  return decades.flatMap((one) => [one, 2 * one, 5 * one]).filter((x) => x >= 0.99 * at[0] && x <= 1.01 * at.at(-1));
}

/** Shares of cells near the optimum, or of targets reached; of one problem, or of all. */
function profilePanel(run, kind, problem, state, dark) {
  const data = kind === "data";
  const { at, shares, curves } = run.profiles.find((one) => one.kind === kind && one.problem === problem);
  const traces = [], csv = [["run", "problem", "algorithm", data ? (shares ? "t_over_T" : "t") : "precision", "share", "n", "expected"]];
  const chosen = curves.filter((one) => state.algorithms.has(run.algorithms[one.algorithm].label));
  for (const one of chosen) {
    const look = run.algorithms[one.algorithm];
    const { line, marker } = lookOf(look, dark);
    const [share] = unpacked(one.share, at.length);
    at.forEach((x, k) => csv.push([run.label, run.problems[problem] || "all", look.label, x, share[k], one.n, one.expected]));
    traces.push({ type: "scatter", mode: chosen.length > MANY ? "lines" : "lines+markers", uid: uidOf(look.label), meta: look.label,
      name: legendName(look.label, one), x: at, y: share, line: { ...line, shape: "hv" }, marker: { ...marker, maxdisplayed: 8 },
      hovertemplate: `%{fullData.name}<br>${data ? "t" : "x"} = %{x:.3g}: %{y:.1%}<br>n = ${one.n} of ${one.expected}<extra></extra>` });
  }
  return {
    traces, csv,
    note: noted(data ? "share of (cell, target) pairs solved by round t; a cell that failed solves nothing" : "share of the cells asked for with a final simple regret of at most x |f*|",
      run.ends[problem] || run.end, drawnOf(chosen, curves)),
    layout: {
      xaxis: { type: "log", tickvals: data ? roundTicks(at) : undefined, title: { text: data ? (shares ? "Round t, in units of T" : "Round t") : "Precision x, in units of |f*|" }, exponentformat: "power" },
      yaxis: { range: [0, 1.03], tickformat: ".0%", title: { text: data ? "Targets reached" : "Cells with r ≤ x |f*|" } },
    },
  };
}
