// How the playground writes: elements, sentences with gaps, numbers in the page's language.

// Children are elements or text, never HTML.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// A table with named rows and columns.
export function grid(kind, label, corner, rows, columns, cell) {
  const head = text => make("th", { scope: "col" }, text);
  return make("table", { class: kind, "aria-label": label },
    make("thead", {}, make("tr", {}, corner ? head(corner) : make("td"), ...columns.map(head))),
    make("tbody", {}, ...rows.map((row, i) =>
      make("tr", {}, make("th", { scope: "row" }, row), ...columns.map((_, j) => cell(i, j))))));
}

export const filled = (text, values = {}) => text.replace(/\{(\w+)\}/g, (gap, name) => values[name] ?? gap);

export function writer({ decimal }) {
  const local = text => text.replace(".", decimal).replaceAll("-", "−");
  const power = text => local(text).replace(/e\+?(−?\d+)/, (_, n) => ` × 10${[...n].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789−".indexOf(c)]).join("")}`);
  const unsigned = text => Number(text) === 0 ? text.replace("-", "") : text;
  return {
    // In a field, to be edited.
    input: value => String(value).replace(".", decimal),
    // In a table.
    fixed: value => Math.abs(value) < 1e6 ? local(unsigned(value.toFixed(3))) : power(value.toExponential(3)),
    // In a computation: whole if it is whole, otherwise to four digits.
    number(value) {
      const size = Math.abs(value), short = value.toFixed(4);
      if (value !== 0 && (size >= 1e6 || size < 1e-3)) return power(value.toExponential(3));
      return local(Number(short) === value ? String(value) : short);
    },
  };
}
