"use strict";
// Data, elements and tables. Text from a run is only ever set as text, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** An element: attributes, "on..." listeners, and children that are elements or text. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** Paragraphs of a text, a line each. */
function lines(text, kind) {
  return text ? text.split("\n").map((line) => el("p", { class: kind }, line)) : [];
}

/** A name for a file, of letters and digits. */
function fileName(...words) {
  return words.filter(Boolean).join("_").replace(/[^\p{L}\p{N}.-]+/gu, "_").slice(0, 120) || "cbobench";
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Rows as CSV; text that a spreadsheet would take for a formula begins with an apostrophe. */
function csvOf(rows) {
  const quoted = (cell) => {
    const given = cell === null || cell === undefined ? "" : String(cell);
    const number = /^[-+][\d.,∞%†*[\]/\s+-]*(e[-+]?\d+)?$|^-?inf$/i.test(given);
    const text = /^[=+\-@＝＋－＠]/.test(given) && !number ? `'${given}` : given;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}

/** What a cell is sorted by: its first number, -1 for none; or its words. */
function sortKey(text) {
  const plain = text.replaceAll(",", "").replace("∞", "Infinity");
  const found = /^[^\d-]{0,2}(-?(?:Infinity|\d+(?:\.\d+)?(?:e[+-]?\d+)?))/.exec(plain);
  return found ? Number(found[1]) : NaN;
}

/** Words in order: those that are numbers first, by value. */
function byWords(a, b) {
  const [x, y] = [a, b].map((text) => (/^-?[\d,.]+(e[+-]?\d+)?$/.test(text) ? sortKey(text) : NaN));
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b, "en", { numeric: true });
  return x - y;
}

let tableCount = 0;

/** Hides columns of a table, the last ones first, until it is as wide as its place; returns what shows them again. */
function fitTable(figure) {
  const place = figure.querySelector(".scroll"), note = figure.querySelector(".left-out");
  const headings = [...figure.querySelectorAll("thead th")], hidden = [];
  const show = (column, on) => { for (const row of figure.querySelectorAll("tr:not(.group)")) row.children[column].hidden = !on; };
  while (place.scrollWidth > place.clientWidth && headings.length - hidden.length > 2) {
    const column = headings.length - hidden.length - 1;
    show(column, false);
    hidden.unshift(column);
  }
  note.textContent = hidden.length ? `not on paper: ${hidden.map((column) => headings[column].textContent).join(", ")}` : "";
  return () => { for (const column of hidden) show(column, true); note.textContent = ""; };
}

/** Marks a table whose right edge hides columns. */
function markCut(scroller) {
  scroller.classList.toggle("cut", scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 1);
}
const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => markCut(target)));

/** A table that can be sorted by every column, filtered, and downloaded as CSV. */
function tableOf(table, file) {
  const id = `table-${(tableCount += 1)}`;
  const [marked, best] = [table.marked, table.best].map((cells) => new Set(cells.map(([i, j]) => `${i} ${j}`)));
  const verdicts = { "+": "holds", "−": "fails", "?": "open" };
  const body = el("tbody");
  const grouped = table.left > 1 && table.rows.some((cells, i) => i && cells[0] === table.rows[i - 1][0]);
  const rows = table.rows.map((cells, i) => {
    const begins = i > 0 && table.left > 1 && cells[0] !== table.rows[i - 1][0];
    const shown = cells.map((cell, j) => {
      const look = [j < table.left ? "words" : "number", cell.length > 40 ? "long" : "", best.has(`${i} ${j}`) ? "best" : ""];
      if (table.kind === "map" && j) look.push(verdicts[cell[0]] || "");
      const text = cell + (marked.has(`${i} ${j}`) && !best.has(`${i} ${j}`) ? "*" : "");
      return j === 0 ? el("th", { scope: "row", class: look.join(" ") }, text) : el("td", { class: look.join(" ") }, text);
    });
    return { cells, at: i, text: cells.join(" ").toLowerCase(), row: el("tr", { class: begins ? "begins" : null }, shown) };
  });
  const said = el("span", { class: "said", role: "status" });
  const filter = el("input", { type: "search", id: `${id}-filter`, oninput: show, autocomplete: "off" });
  let order = { column: -1, down: false };

  function show() {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter((one) => wanted.every((word) => one.text.includes(word)));
    const heads = grouped && order.column < 0; // on a narrow screen, where the first column is not shown
    body.replaceChildren(...kept.flatMap((one, i) => (heads && (!i || one.cells[0] !== kept[i - 1].cells[0])
      ? [el("tr", { class: "group" }, el("th", { scope: "rowgroup", colspan: table.columns.length }, el("span", {}, one.cells[0]))), one.row] : [one.row])));
    body.parentElement?.classList.toggle("grouped", heads);
    body.classList.toggle("sorted", order.column >= 0);
    const count = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"}`;
    said.textContent = kept.length === rows.length ? count : `${kept.length.toLocaleString("en")} of ${count}`;
  }

  function sort(column) {
    if (order.column !== column) order = { column, down: false };
    else order = order.down ? { column: -1, down: false } : { column, down: true };
    const side = order.down ? -1 : 1;
    const numbers = column >= table.left;
    rows.sort((a, b) => {
      if (order.column < 0) return a.at - b.at;
      if (!numbers) return side * byWords(a.cells[column], b.cells[column]) || a.at - b.at;
      const [x, y] = [sortKey(a.cells[column]), sortKey(b.cells[column])];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.at - b.at; // none: last
      return side * (x === y ? 0 : x < y ? -1 : 1) || a.at - b.at;
    });
    headings.forEach((heading, i) => {
      heading.setAttribute("aria-sort", i !== order.column ? "none" : order.down ? "descending" : "ascending");
    });
    show();
  }

  const headings = table.columns.map((name, j) => el(
    "th", { scope: "col", "aria-sort": "none", class: j < table.left ? "words" : "number" },
    el("button", { type: "button", onclick: () => sort(j), title: "sort" }, name || "–"),
  ));
  const shown = () => rows.filter((one) => one.row.isConnected);
  const csv = () => csvOf(table.digits.length ? [...table.digits[0], ...shown().flatMap((one) => table.digits[one.at + 1])]
    : [table.columns, ...shown().map((one) => one.cells)]);
  const made = el(
    "figure", { class: "table", id },
    el("figcaption", {}, table.title),
    el("div", { class: "tools" },
      el("label", { for: `${id}-filter` }, "Filter"), filter, said,
      el("button", { type: "button", onclick: () => download(`${file}.csv`, csv()) }, "CSV")),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title, onscroll: (event) => markCut(event.target) },
      el("table", { class: grouped ? "labelled" : null }, el("thead", {}, el("tr", {}, headings)), body)),
    lines(table.note, "note"), el("p", { class: "note left-out" }),
  );
  show();
  resized.observe(made.querySelector(".scroll"));
  return made;
}
