"use strict";
// The page: sections in order, and what a reader chooses in them.

const main = document.getElementById("main");
const several = DATA.runs.length > 1;

/** Labels of all runs, once each, with the look that the first run gives them. */
function union(name) {
  const found = new Map();
  for (const run of DATA.runs) {
    for (const one of Object.values(run[name])) {
      const [label, look] = typeof one === "string" ? [one, null] : [one.label, one];
      if (!found.has(label)) found.set(label, look);
    }
  }
  return found;
}

const problems = union("problems"), algorithms = union("algorithms");
const metrics = Object.keys(DATA.metrics).filter((name) => DATA.runs.some((run) => run.metrics.includes(name)));
const has = (name) => metrics.includes(name);
const state = {
  metric: has("regret") ? "regret" : metrics[0], view: "median", xlog: false, ylog: false,
  across: has("regret") ? "regret" : metrics[0], up: has("violation_hard") ? "violation_hard" : metrics[0],
  final: "median", planelog: false, rank: null,
  problems: new Set([...problems.keys()].slice(0, 4)), algorithms: new Set([...algorithms.keys()].slice(0, 10)),
};

function section(id, title, ...children) {
  const made = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), children);
  main.append(made);
  document.getElementById("sections").append(el("a", { href: `#${id}` }, title));
  return made;
}

const runName = (run) => (several ? run.label : "");
const heading = (run) => (several ? el("h3", {}, run.label) : null);

const rebuilt = [];
function rebuild() { for (const make of rebuilt) make(); redraw(); }

/** A list to choose one of. */
function choice(label, options, chosen, act) {
  const list = el("select", { onchange: () => act(list.value) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label", {}, `${label} `, list);
}

function tick(label, chosen, act) {
  const box = el("input", { type: "checkbox", checked: chosen, onchange: () => act(box.checked) });
  return el("label", {}, box, ` ${label}`);
}

/** Labels to choose some of, each with the look of its lines; the same choice wherever it is offered. */
function chooser(title, labels, chosen) {
  const boxes = [...labels].map(([label, look]) => {
    const box = el("input", { type: "checkbox", checked: chosen.has(label), value: label, onchange: () => {
      if (box.checked) chosen.add(label); else chosen.delete(label);
      rebuild();
    } });
    const chip = el("label", { class: "chip" }, box, look ? el("i", { class: "swatch", "aria-hidden": "true" }) : null, ` ${label}`);
    if (look) { chip.style.setProperty("--light", look.light); chip.style.setProperty("--dark", look.dark); }
    return chip;
  });
  const all = (on) => el("button", { type: "button", onclick: () => {
    for (const chip of boxes) { const box = chip.firstChild; box.checked = on; if (on) chosen.add(box.value); else chosen.delete(box.value); }
    rebuild();
  } }, on ? "all" : "none");
  const summary = el("summary", {});
  rebuilt.push(() => { summary.textContent = title + (chosen.size < labels.size ? ` (${chosen.size} of ${labels.size} drawn)` : ""); });
  return el("details", { class: "chooser", open: labels.size <= 12 },
    summary, el("fieldset", {}, el("legend", {}, title), boxes, all(true), all(false)));
}

/** A place for panels that is filled again whenever the choice changes. */
function gallery(make) {
  const place = el("div", { class: several && DATA.runs.length < 4 ? "panels beside" : "panels" });
  place.style.setProperty("--runs", DATA.runs.length);
  rebuilt.push(() => place.replaceChildren(...make().map((panel) => panel.figure)));
  return place;
}

function chosenPanels(make) {
  const found = [];
  for (const label of problems.keys()) {
    if (!state.problems.has(label)) continue;
    for (const run of DATA.runs) {
      const problem = Object.keys(run.problems).find((title) => run.problems[title] === label);
      if (problem !== undefined) found.push(make(run, problem, label));
    }
  }
  return found;
}

const metricChoices = metrics.map((name) => {
  const { label, symbol } = DATA.metrics[name];
  return [name, label.endsWith(symbol) ? label : `${label} ${symbol}`];
});
const set = (name) => (value) => { state[name] = value; rebuild(); };

function curvesSection() {
  const views = [["median", "median and quartiles"], ["mean", "mean and 95 % interval"], ["seeds", "every seed"]];
  section("curves", "Curves",
    el("div", { class: "controls" },
      choice("Metric", metricChoices, state.metric, set("metric")), choice("Statistic", views, state.view, set("view")),
      tick("log t", state.xlog, set("xlog")), tick("log values", state.ylog, set("ylog")),
      chooser("Algorithms", algorithms, state.algorithms), chooser("Problems", problems, state.problems)),
    el("p", { class: "note" }, "Regret, reward and values are in units of f, violations in units of g, counts in rounds. "
      + "Drag to zoom, double-click for all; a click in the legend hides a curve, a double-click leaves it alone. With the keyboard: + and − zoom, arrows move, 0 shows all."),
    gallery(() => chosenPanels((run, problem, label) => panelOf(
      [label, runName(run)].filter(Boolean).join(" · "), fileName("curves", state.metric, label, runName(run)),
      (dark) => curvePanel(run, problem, state, dark)))));
}

function planeSection() {
  section("plane", "Regret and violation in the end",
    el("div", { class: "controls" },
      choice("Across", metricChoices, state.across, set("across")), choice("Upwards", metricChoices, state.up, set("up")),
      choice("Statistic", [["median", "median and interval"], ["mean", "mean and 95 % interval"]], state.final, set("final")),
      tick("log axes", state.planelog, set("planelog"))),
    gallery(() => chosenPanels((run, problem, label) => panelOf(
      [label, runName(run)].filter(Boolean).join(" · "), fileName("plane", state.across, state.up, label, runName(run)),
      (dark) => planePanel(run, problem, state, dark)))));
}

function manySection() {
  const ranked = DATA.runs.filter((run) => run.ranks.length);
  const symbols = new Map(ranked.flatMap((run) => run.ranks.map((row) => [row.metric, row.symbol])));
  state.rank = [...symbols.keys()][0];
  const profiled = DATA.runs.filter((run) => Object.keys(run.profiles).length);
  if (!ranked.length && !profiled.length) return;
  section("many", "Ranks and profiles over all problems",
    ranked.length ? el("div", { class: "controls" }, choice("Ranks by", [...symbols], state.rank, set("rank"))) : null,
    gallery(() => [
      ...ranked.map((run) => panelOf(["Average ranks", runName(run)].filter(Boolean).join(" · "), fileName("ranks", state.rank, runName(run)),
        (dark) => rankPanel(run, state, dark))),
      ...profiled.flatMap((run) => ["performance", "data"].map((kind) => panelOf(
        [`${kind[0].toUpperCase()}${kind.slice(1)} profile`, runName(run)].filter(Boolean).join(" · "), fileName(kind, "profile", runName(run)),
        (dark) => profilePanel(run, kind, state, dark))))]));
}

function tablesSection() {
  const made = DATA.runs.flatMap((run) => [heading(run), ...run.tables.map((table) => (table.absent
    ? el("p", { class: "note" }, `${table.kind}: ${table.absent}`)
    : el("details", { open: table.kind === "Results" }, el("summary", {}, table.kind), tableOf(table, fileName(table.kind, run.label)))))]);
  section("tables", "Comparison", el("p", { class: "note" },
    "The numbers of cbobench compare. A heading sorts: upwards, downwards, as it was. * marks what the line below the table says."), made);
  if (DATA.changes.length) section("changes", "What changed between the runs", DATA.changes.map((table) => tableOf(table, fileName("changes", table.kind))));
}

function claimsSection() {
  if (DATA.unclaimed) section("claims", "Claims of the papers", el("p", {}, DATA.unclaimed));
  else if (DATA.claims) section("claims", "Claims of the papers", tableOf(DATA.claims, "claims"), DATA.maps.map((table) => tableOf(table, fileName("map", table.title))));
}

function aboutSection() {
  section("ran", "What ran", DATA.runs.map((run) => [heading(run),
    run.notes.map((note) => el("p", { class: "warning", role: "note" }, note)),
    el("dl", {}, run.facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    run.settings.filter((table) => table.rows.length).map((table) => el("details", {}, el("summary", {}, table.title), tableOf(table, fileName(table.title, run.label))))]));
}

function failuresSection() {
  const made = DATA.runs.flatMap((run) => {
    const { count, rows, traces } = run.failures;
    const listed = rows.map(([problem, algorithm, horizon, seed, error, trace]) => el("details", { class: "failure" },
      el("summary", {}, `${problem} / ${algorithm}, T = ${horizon.toLocaleString("en")}, seed ${seed}: ${error}`), el("pre", {}, traces[trace] || "no traceback")));
    const some = rows.length < count ? ` The first ${rows.length} are listed.` : "";
    return [count || run.stale ? heading(run) : null, count ? el("p", {}, `${count.toLocaleString("en")} ${count === 1 ? "cell" : "cells"} failed.${some}`) : null, ...listed,
      run.stale ? tableOf(run.stale, fileName("stale", run.label)) : null].filter(Boolean);
  });
  section("failures", "Failed and stale cells", made.length ? made : el("p", {}, "No cell failed, and none is stale."));
}

function themes() {
  const button = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = (on) => {
    document.documentElement.dataset.theme = on ? "dark" : "light";
    button.setAttribute("aria-pressed", String(on));
    redraw();
  };
  button.addEventListener("click", () => paint(!isDark()));
  dark.addEventListener("change", (event) => paint(event.matches));
  paint(dark.matches);
  let before = null;
  const print = (on) => { // on white, all of it, as wide as a column of the sheet
    if (on && before === null) {
      before = isDark();
      document.documentElement.dataset.theme = "light";
      for (const panel of panels) { panel.draw(true); Plotly.relayout(panel.plot, { width: 320 }); }
    } else if (!on && before !== null) {
      document.documentElement.dataset.theme = before ? "dark" : "light";
      before = null;
      redraw();
    }
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
}

aboutSection();
tablesSection();
if (metrics.length) { curvesSection(); planeSection(); manySection(); }
claimsSection();
failuresSection();
document.getElementById("made").textContent = `Made by ${DATA.by}; figures by Plotly.js ${Plotly.version} (MIT licence).`;
themes();
rebuild();
for (const panel of panels) if (panel.plot.getBoundingClientRect().top < innerHeight) panel.draw();
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}));
