"use strict";
// The page: sections in order, and how they look on a screen and on paper.

const main = document.getElementById("main");

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

/** A part of the page, with its link at the head. */
function section(id, title, ...children) {
  const made = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), children);
  main.append(made);
  document.getElementById("sections").append(el("a", { href: `#${id}`, onclick: (event) => {
    event.preventDefault(); // the address keeps what is chosen, too
    place = id;
    writeAddress(place);
    made.scrollIntoView();
  } }, title));
  return made;
}

const runName = (run) => (several ? run.label : "");
const heading = (run) => (several ? el("h3", {}, run.label) : null);

/** A place for panels; `wanted()` names those that are chosen, and how to make each. */
function gallery(wanted) {
  const holder = el("div", { class: several && DATA.runs.length < 4 ? "panels beside" : "panels" });
  const made = new Map();
  holder.style.setProperty("--runs", DATA.runs.length);
  rebuilt.push(() => holder.replaceChildren(...wanted().map(([key, make]) => {
    if (!made.has(key)) made.set(key, make());
    return made.get(key).figure;
  })));
  return holder;
}

const titled = (...parts) => parts.filter(Boolean).join(" · ");

/** A panel for every chosen problem of every run. */
function chosenPanels(file, build) {
  return [...problems.keys()].filter((label) => state.problems.has(label)).flatMap((label) => DATA.runs.flatMap((run, at) => {
    const problem = Object.keys(run.problems).find((title) => run.problems[title] === label);
    if (problem === undefined) return [];
    const make = () => panelOf(titled(label, runName(run)), () => fileName(...file(), label, runName(run)), (dark) => build(run, problem, dark));
    return [[`${at} ${label}`, make]];
  }));
}

const metricChoices = metrics.map((name) => {
  const { label, symbol } = DATA.metrics[name];
  return [name, label.endsWith(symbol) ? label : `${label} ${symbol}`];
});

function curvesSection() {
  const views = [["median", "median and quartiles"], ["mean", "mean and 95 % interval"], ["seeds", "every seed"]];
  section("curves", "Curves",
    el("div", { class: "controls" },
      choice("Metric", metricChoices, "metric"), choice("Statistic", views, "view"),
      timed ? choice("x axis", [["rounds", "rounds t"], ["seconds", "CPU seconds"]], "x") : null,
      tick("log t", "xlog"), tick("log values", "ylog"),
      chooser("Algorithms", algorithms, state.algorithms), chooser("Problems", problems, state.problems)),
    el("p", { class: "note hint" }, "Regret, reward and values are in units of f, violations in units of g, counts in rounds. "
      + "Point at a curve, or at a name above, to see it alone. Drag to zoom, double-click for all; a click in the legend hides a curve. "
      + "With the keyboard: + and − zoom, arrows move, 0 shows all."),
    gallery(() => chosenPanels(() => ["curves", state.metric], (run, problem, dark) => curvePanel(run, problem, state, dark))));
}

function planeSection() {
  section("plane", "Regret and violation in the end",
    el("div", { class: "controls" },
      choice("Across", metricChoices, "across"), choice("Upwards", metricChoices, "up"),
      choice("Statistic", [["median", "median and interval"], ["mean", "mean and 95 % interval"]], "final"), tick("log axes", "planelog")),
    gallery(() => chosenPanels(() => ["plane", state.across, state.up], (run, problem, dark) => planePanel(run, problem, state, dark))));
}

function manySection() {
  const profiled = DATA.runs.filter((run) => run.profiles.length);
  if (!ranked.size && !profiled.length) return;
  const over = (run, kind, problem) => [`${DATA.runs.indexOf(run)} ${kind} ${problem}`, () => panelOf(
    titled(`${kind[0].toUpperCase()}${kind.slice(1)} profile`, run.problems[problem], runName(run)),
    () => fileName(kind, "profile", run.problems[problem], runName(run)), (dark) => profilePanel(run, kind, problem, state, dark))];
  const single = (run) => Object.keys(run.problems).filter((problem) => state.problems.has(run.problems[problem])
    && run.profiles.some((one) => one.problem === problem));
  section("many", "Ranks and profiles over all problems",
    el("div", { class: "controls" }, ranked.size ? choice("Ranks by", [...ranked], "rank") : null,
      profiled.length ? tick("data profile of each chosen problem", "apart") : null),
    gallery(() => [
      ...DATA.runs.filter((run) => run.ranks.length).map((run) => [`${DATA.runs.indexOf(run)}`, () => panelOf(
        titled("Average ranks", runName(run)), () => fileName("ranks", state.rank, runName(run)), (dark) => rankPanel(run, state, dark))]),
      ...profiled.flatMap((run) => [over(run, "performance", ""), over(run, "data", ""),
        ...(state.apart ? single(run).map((problem) => over(run, "data", problem)) : [])])]));
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
}

/** On paper: white, with all that is closed, figures as wide as a column, and of wide tables the columns that fit. */
function printing() {
  const root = document.documentElement, phone = matchMedia("(max-width: 40rem)");
  const group = () => root.toggleAttribute("data-groups", phone.matches || undo !== null); // problems as rows, for want of room
  let undo = null;
  const print = (on) => {
    if (on && !undo) {
      const was = root.dataset.theme, closed = [...document.querySelectorAll("details:not([open])")];
      root.dataset.theme = "light";
      root.dataset.paper = root.dataset.groups = "";
      for (const one of closed) if (!one.classList.contains("chooser")) one.open = true;
      const cut = [...document.querySelectorAll("figure.table")].map(fitTable);
      for (const panel of panels) if (panel.figure.isConnected) panel.draw();
      undo = () => {
        root.dataset.theme = was;
        delete root.dataset.paper;
        for (const one of closed) one.open = false;
        for (const back of cut) back();
        redraw();
      };
    } else if (!on && undo) { undo(); undo = null; group(); }
  };
  group();
  phone.addEventListener("change", group);
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
if (unknown.length) main.prepend(el("p", { class: "warning", role: "status" }, `The address asks for what is not on this page: ${unknown.join(", ")}`));
themes();
printing();
rebuild();
document.getElementById(place)?.scrollIntoView();
addEventListener("hashchange", () => location.reload()); // an address typed over this one
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}));
