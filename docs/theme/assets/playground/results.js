// What is computed: tables of cells that can be asked where they come from.

import { views } from "./state.js";
import { grid, make } from "./text.js";
import { traced } from "./trace.js";

export function results(at, result) {
  const wide = [["concat", result.Z], ["output", result.Y]];
  return [
    make("p", { class: "recomputed" }, at.word("recomputed")),
    ...(at.small || at.state.H === 1 ? [] : [viewer(at)]),
    make("div", { class: "tables" }, ...weights(at, result.A)),
    ...(at.small ? [] : [make("div", { class: "tables" }, ...wide.map(([kind, M]) => table(at, kind, at.word(kind), M, false)))]),
    make("div", { class: "trace" }, ...(at.state.cell ? traced(at, result) : [make("p", {}, at.word("hint"))])),
  ];
}

function viewer(at) {
  const named = view => view.startsWith("head-") ? `head ${view.slice(5)}` : at.word(view);
  return make("div", { class: "row" }, make("label", {}, at.word("view"), make("select", {
    "data-key": "view", onchange: event => at.look({ view: event.target.value, cell: null }),
  }, ...views(at.state.H).map(view => make("option", { value: view, selected: view === at.state.view }, named(view))))));
}

function weights(at, A) {
  const { view } = at.state;
  if (view === "mean") return [table(at, "mean", at.word("mean"), combined(A, w => w.reduce((a, b) => a + b, 0) / A.length))];
  if (view === "differences") return A.slice(1).map((M, h) =>
    table(at, `differences-${h + 1}`, `head ${h + 2} − head 1`, combined([M, A[0]], ([a, b]) => a - b)));
  return A.flatMap((M, h) =>
    view === "all" || view === `head-${h + 1}` ? [table(at, `weights-${h}`, `head ${h + 1}`, M)] : []);
}

// Cell by cell, one matrix out of several.
const combined = (all, cell) => all[0].map((row, i) => row.map((_, j) => cell(all.map(M => M[i][j]))));

function table(at, kind, title, M, square = true) {
  const { names, H, cell } = at.state, top = Math.max(1, ...M.flat().map(Math.abs));
  const columns = square ? names : M[0].map((_, c) => c), width = columns.length / H;
  const chosen = cell?.startsWith(`${kind}-`) ? cell : `${kind}-0-0`;
  const told = (i, j) => square ? `${names[i]} → ${names[j]}` : `${names[i]}, ${at.word("column")} ${j}`;
  const draw = (i, j) => {
    const value = M[i][j], text = at.write.fixed(value), key = `${kind}-${i}-${j}`;
    const classes = [`w${Math.round(20 * Math.abs(value) / top)}`, value < 0 && "negative",
      kind === "concat" && j && j % width === 0 && "next-head"].filter(Boolean).join(" ");
    return make("td", { class: classes, "data-value": value }, make("button", {
      type: "button", "data-key": key, tabindex: key === chosen ? 0 : -1,
      "aria-pressed": String(key === cell), "aria-label": `${told(i, j)}: ${text}`,
    }, text));
  };
  return make("figure", { "data-of": kind },
    grid("weights", title, square ? at.words.corner : "", names, columns, draw), make("figcaption", {}, title));
}

// The arrow keys go from cell to cell; Tab leaves the table.
export function rove(event) {
  const cell = event.target.closest("td:has(> [data-key])");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!cell || !step) return;
  event.preventDefault();
  const row = cell.closest("tbody").rows[cell.parentNode.sectionRowIndex + step[0]];
  const next = row?.cells[cell.cellIndex + step[1]]?.querySelector("[data-key]");
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
