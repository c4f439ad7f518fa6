// All cells of the parity matrix, fetched when the reader asks for them, as a table to filter.
const STEP = 50;
const box = document.querySelector(".cells"), words = JSON.parse(box.dataset.words);

const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const label = name => words.columns[name] ?? name;

// 1.4e-15 as the page's language writes it
const number = text => {
  const [mantissa, power] = text.split("e"), start = mantissa.replace(".", words.decimal);
  if (!Number(text)) return ["0"];
  return power ? [`${start} × 10`, make("sup", { textContent: `${Number(power)}`.replace("-", "−") })] : [start];
};

const status = make("p", { role: "status" });
const open = make("button", { type: "button", className: "md-button", textContent: words.open });
box.prepend(make("p", {}, open), status);

open.addEventListener("click", async () => {
  open.disabled = true;
  try {
    const answer = await fetch(box.querySelector("a[download]").href);
    if (!answer.ok) throw new Error(answer.statusText);
    const [names, ...cells] = (await answer.text()).trim().split("\n").map(line => line.split(","));
    show(names, cells);
  } catch {
    open.disabled = false;
    status.textContent = words.failed;
  }
});

function show(names, cells) {
  const error = names.indexOf("error"), limit = names.indexOf("limit");
  cells.sort((a, b) => b[error] / b[limit] - a[error] / a[limit]);
  const selects = names.slice(0, names.indexOf("arrays")).map((name, column) => {
    const values = [...new Set(cells.map(cell => cell[column]))].sort((a, b) => a - b);
    const options = values.map(value => make("option", { value, textContent: label(value) }));
    return make("select", { name }, make("option", { value: "", textContent: words.any }), ...options);
  });
  const labels = selects.map(select => make("label", {}, label(select.name), select));
  const group = make("div", { className: "filters", role: "group", ariaLabel: words.filters }, ...labels);
  const head = make("tr", {}, ...names.map(name => make("th", { scope: "col", textContent: label(name) })));
  const body = make("tbody");
  const table = make("table", {}, make("thead", {}, head), body);
  const region = make("div", { className: "scroll", role: "region", tabIndex: 0, ariaLabel: words.table }, table);
  const more = make("button", { type: "button", className: "md-button" });
  let matching = [];

  const append = () => {
    const from = body.rows.length;
    for (const cell of matching.slice(from, from + STEP)) {
      const texts = cell.map((text, i) => i === error || i === limit ? number(text) : [label(text)]);
      body.append(make("tr", {}, ...texts.map(parts => make("td", {}, ...parts))));
    }
    const left = matching.length - body.rows.length;
    more.hidden = !left;
    more.textContent = fill(words.more, { n: Math.min(left, STEP) });
  };
  const filter = () => {
    matching = cells.filter(cell => selects.every((s, column) => !s.value || s.value === cell[column]));
    body.replaceChildren();
    append();
    const counts = { n: matching.length, m: cells.length, error: "\0" };
    const worst = matching.reduce((most, cell) => cell[error] - most > 0 ? cell[error] : most, "0");
    const [before, after = ""] = fill(matching.length ? words.status : words.none, counts).split("\0");
    status.replaceChildren(before, ...(matching.length ? number(worst) : []), after);
  };
  group.addEventListener("change", filter);
  more.addEventListener("click", append);
  open.parentElement.replaceWith(group);
  status.after(region, make("p", {}, more));
  filter();
  selects[0].focus();
}
