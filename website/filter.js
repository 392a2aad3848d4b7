// The open table: a choice for each of some columns above it, and only rows that fit are shown.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("#the-open-table table");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].map(row => ({
    row, words: [...row.cells].map(cell => cell.textContent.trim()),
  }));
  const form = document.createElement("form"), said = document.createElement("output");
  const choices = ["group", "dimension", "noise", "method"].map(name => {
    const label = document.createElement("label"), select = document.createElement("select");
    const place = heads.indexOf(name);
    select.name = name;
    const values = [...new Set(rows.map(({words}) => words[place]))];
    if (name !== "group") values.sort((a, b) => a - b || a.localeCompare(b));
    select.add(new Option("all", ""));
    values.forEach(value => select.add(new Option(value, value)));
    label.append(`${name} `, select);
    form.append(label);
    return {place, select};
  });
  const choose = () => {
    const chosen = choices.filter(({select}) => select.value);
    let shown = 0;
    for (const {row, words} of rows) {
      row.hidden = !chosen.every(({place, select}) => words[place] === select.value);
      shown += !row.hidden;
    }
    said.textContent = `${shown} of ${rows.length} rows`;
  };
  form.className = "filters";
  form.append(said);
  form.addEventListener("change", choose);
  (table.closest(".table-wrapper") ?? table).before(form);
  choose();  // a browser keeps choices when a page is loaded again
});
