"use strict";
// What a reader chooses. The address keeps it after the #, so that a reload keeps it and a link shows it to others.

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
const ranked = new Map(DATA.runs.flatMap((run) => run.ranks.map((row) => [row.metric, row.symbol])));
const timed = DATA.runs.some((run) => run.pairs.some((pair) => pair.seconds !== null));
const held = (name) => metrics.includes(name) && DATA.runs.some((run) => run.pairs.some((pair) => pair.curves[name]));
const preferred = (...names) => names.find(held) ?? names.find((name) => metrics.includes(name)) ?? metrics[0];

/** Whether a metric falls towards 0, so that its decades count. */
const isOnLog = (name) => DATA.metrics[name]?.log ?? false;

/** What may be chosen, the first being chosen at first; labels may be chosen together. */
const ALLOWED = {
  metric: [preferred("simple_regret", "simple_value", "regret"), ...metrics], view: ["median", "mean", "seeds"], x: timed ? ["rounds", "seconds"] : ["rounds"],
  xlog: [false, true], ylog: [isOnLog(preferred("simple_regret", "simple_value", "regret")), true, false],
  across: [preferred("regret", "simple_value"), ...metrics], up: [preferred("violation_hard"), ...metrics], final: ["median", "mean"], planelog: [false, true],
  rank: [...ranked.keys()], apart: [false, true],
};
const LABELS = { algorithms, problems };
const first = { algorithms: 10, problems: 4 };
const state = Object.fromEntries([
  ...Object.entries(ALLOWED).map(([name, values]) => [name, values[0]]),
  ...Object.entries(LABELS).map(([name, labels]) => [name, new Set([...labels.keys()].slice(0, first[name]))]),
]);
const words = (value) => (value instanceof Set ? [...value] : [value]).map((word) => encodeURIComponent(word)).join(",");
const initial = Object.fromEntries(Object.entries(state).map(([name, value]) => [name, words(value)]));

/** Takes over what the address says; returns the section that it names, and the words that this page does not have. */
function readAddress() {
  const unknown = [];
  let place = "";
  for (const part of location.hash.slice(1).split("&").filter(Boolean)) {
    const [name, text] = part.split("=", 2);
    let given;
    try { given = (text ?? "").split(",").filter(Boolean).map(decodeURIComponent); } catch { given = [text]; }
    if (text === undefined) place = name;
    else if (Object.hasOwn(LABELS, name)) {
      state[name] = new Set(given.filter((word) => LABELS[name].has(word)));
      unknown.push(...given.filter((word) => !LABELS[name].has(word)));
    } else {
      const found = Object.hasOwn(ALLOWED, name) ? ALLOWED[name].filter((value) => String(value) === given[0]) : [];
      if (found.length) [state[name]] = found; else unknown.push(part);
    }
  }
  return { place, unknown };
}

/** Puts what differs from the first choice into the address, behind the section, if one was asked for. */
function writeAddress(place) {
  const chosen = Object.entries(state).map(([name, value]) => [name, words(value)]).filter(([name, text]) => text !== initial[name]);
  const parts = [place, ...chosen.map((pair) => pair.join("="))].filter(Boolean);
  history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
}

let { place, unknown } = readAddress();
const rebuilt = [];

/** Draws what is chosen now. */
function rebuild() {
  for (const make of rebuilt) make();
  writeAddress(place);
  redraw();
}

const set = (name) => (value) => {
  state[name] = value;
  if (name === "metric") state.ylog = ticks.ylog.checked = isOnLog(value);
  rebuild();
};
const ticks = {};

/** A list to choose one of. */
function choice(label, options, name) {
  const list = el("select", { onchange: () => set(name)(list.value) },
    options.map(([value, text]) => el("option", { value, selected: value === state[name] }, text)));
  return el("label", {}, `${label} `, list);
}

function tick(label, name) {
  const box = el("input", { type: "checkbox", checked: state[name], onchange: () => set(name)(box.checked) });
  ticks[name] = box;
  return el("label", {}, box, ` ${label}`);
}

/** Labels to choose some of, each with the look of its lines. Of many, a search finds some and shows their curves. */
function chooser(title, labels, chosen) {
  const chips = [...labels].map(([label, look]) => {
    const box = el("input", { type: "checkbox", checked: chosen.has(label), value: label, onchange: () => {
      if (box.checked) chosen.add(label); else chosen.delete(label);
      rebuild();
    } });
    const chip = el("label", { class: "chip" }, box, look ? el("i", { class: "swatch", "aria-hidden": "true" }) : null, ` ${label}`);
    if (look) {
      chip.style.setProperty("--light", look.light);
      chip.style.setProperty("--dark", look.dark);
      const point = () => highlight([label]);
      for (const [begin, end] of [["pointerenter", "pointerleave"], ["focusin", "focusout"]]) {
        chip.addEventListener(begin, point);
        chip.addEventListener(end, find);
      }
    }
    return { label, box, chip };
  });
  const search = el("input", { type: "search", oninput: find, autocomplete: "off", placeholder: "find", "aria-label": `Find ${title.toLowerCase()}` });
  const matching = () => chips.filter(({ label }) => label.toLowerCase().includes(search.value.toLowerCase()));
  function find() {
    const found = new Set(matching());
    for (const one of chips) one.chip.hidden = !found.has(one);
    highlight(search.value ? [...found].map(({ label }) => label) : null);
  }
  const all = (on) => el("button", { type: "button", onclick: () => {
    for (const { label, box } of matching()) { box.checked = on; if (on) chosen.add(label); else chosen.delete(label); }
    rebuild();
  } }, on ? "all" : "none");
  const summary = el("summary", {});
  rebuilt.push(() => { summary.textContent = title + (chosen.size < labels.size ? ` (${chosen.size} of ${labels.size} drawn)` : ""); });
  return el("details", { class: "chooser", open: labels.size <= MANY }, summary,
    el("fieldset", {}, el("legend", {}, title), labels.size > MANY ? search : null, all(true), all(false), chips.map(({ chip }) => chip)));
}
