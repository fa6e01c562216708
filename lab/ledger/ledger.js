"use strict";
const form = document.getElementById("filters");
const entries = [...document.querySelectorAll("article")];
const texts = new Map(entries.map((entry) => [entry, entry.textContent.toLowerCase()]));
const fields = ["evidence", "disposition", "subsystem"];
for (const field of fields) {
  const values = [...new Set(entries.map((entry) => entry.dataset[field]))].filter(Boolean).sort();
  form.elements[field].append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
}
function filter() {
  const wanted = form.elements.text.value.trim().toLowerCase();
  let shown = 0;
  for (const entry of entries) {
    const fits = fields.every((field) => !form.elements[field].value ||
      entry.dataset[field] === form.elements[field].value) && texts.get(entry).includes(wanted);
    entry.hidden = !fits;
    shown += fits;
  }
  document.getElementById("shown").textContent = `${shown} of ${entries.length} shown`;
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
filter();
