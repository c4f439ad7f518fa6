// What the reader edits: tokens, sizes, mask, projections.

import { LIMITS, Refusal, divisors, everything, eye, isEye, maskOf, name, number, resized, triangle } from "./state.js";
import { make, grid } from "./text.js";

const PARTS = { mask: [], projections: ["W_Q", "W_K", "W_V"], output_projection: ["W_O"] };

export function editors(at) {
  const rest = () => [settings(at), mask(at), matrices(at, "projections"), matrices(at, "output_projection")];
  return [tokens(at), ...(at.small ? [] : rest())];
}

// The words that follow the state while fields stay as they are: summaries, names of tokens.
export function describe(at) {
  for (const summary of at.editors.querySelectorAll("summary")) summary.textContent = summarised(at, summary.parentNode.dataset.of);
  for (const element of at.editors.querySelectorAll("[data-tokens]")) {
    const text = element.dataset.tokens.split("-").map(i => at.state.names[i]).join(" → ");
    if (element.matches("input")) element.setAttribute("aria-label", text);
    else element.textContent = text;
  }
}

function summarised(at, part) {
  const plain = PARTS[part].every(W => isEye(at.state[W])) ? "plain" : "free";
  return `${at.word(part)}: ${at.word(`${part}_${part === "mask" ? maskOf(at.state) : plain}`)}`;
}

function tokens(at) {
  const { X, names } = at.state, T = X.length, d = X[0].length;
  const size = (word, count, off) =>
    at.button(word, () => at.to(resized(at.state, count, d)), { disabled: off });
  const rename = i => (state, value) => ({ ...state, names: state.names.with(i, value) });
  const fields = names.map((value, i) => field(at, `names[${i}]`, value, name, rename(i), { class: "name" }));
  return make("div", {}, numbers(at, "X", fields), make("div", { class: "row" },
    size("add_token", T + 1, T === LIMITS.tokens), size("remove_token", T - 1, T === 1)));
}

function settings(at) {
  const { X, H, scaled } = at.state, T = X.length, d = X[0].length;
  const choose = (word, numbers, chosen, next) => make("label", {}, at.word(word),
    make("select", { "data-key": word, onchange: event => at.to(next(Number(event.target.value))) },
      ...numbers.map(n => make("option", { value: n, selected: n === chosen }, n))));
  return make("div", { class: "row" },
    choose("heads", divisors(d), H, n => resized({ ...at.state, H: n }, T, d)),
    choose("d_model", eye(LIMITS.d_model).map((_, i) => i + 1), d, n => resized(at.state, T, n)),
    make("label", {}, make("input", { type: "checkbox", "data-key": "scaled", checked: scaled,
      onchange: event => at.to({ ...at.state, scaled: event.target.checked }) }), at.word("scaled")));
}

function mask(at) {
  const { names, allow } = at.state;
  const set = (word, kind) => at.button(word, () => at.to({ ...at.state, allow: kind(names.length) }));
  const box = (i, j) => make("td", {}, make("input", {
    type: "checkbox", checked: allow[i][j], "aria-label": `${names[i]} → ${names[j]}`,
    "data-tokens": `${i}-${j}`, "data-key": `allow-${i}-${j}`,
    onchange: event => at.to({ ...at.state, allow: allow.with(i, allow[i].with(j, event.target.checked)) }),
  }));
  const heads = names.map((text, i) => () => make("span", { "data-tokens": i }, text));
  return folded(at, "mask",
    make("div", { class: "row" }, set("mask_all", everything), set("mask_causal", triangle)),
    make("p", {}, at.word("mask_hint")),
    grid("editor", "allow", at.words.corner, heads.map(head => head()), heads.map(head => head()), box));
}

function matrices(at, part) {
  const reset = () => Object.fromEntries(PARTS[part].map(W => [W, eye(at.state.X[0].length)]));
  return folded(at, part,
    make("div", { class: "row" }, at.button(`${part}_reset`, () => at.to({ ...at.state, ...reset() }))),
    ...PARTS[part].map(W => numbers(at, W, at.state[W].map((_, i) => i))));
}

function folded(at, part, ...children) {
  return make("details", { "data-of": part }, make("summary", { "data-key": part }, summarised(at, part)), ...children);
}

// A matrix of fields.
function numbers(at, M, heads) {
  const put = (i, j) => (state, value) => ({ ...state, [M]: state[M].with(i, state[M][i].with(j, value)) });
  return grid("editor", M, M, heads, at.state[M][0].map((_, j) => j), (i, j) =>
    make("td", {}, field(at, `${M}[${i}, ${j}]`, at.state[M][i][j], number, put(i, j))));
}

// A good value counts at once. When the reader is done it is kept, or a bad one is refused.
function field(at, label, value, read, put, more = {}) {
  const shown = value => typeof value === "number" ? at.write.input(value) : value;
  let good = shown(value);
  const take = input => {
    const value = read(input.value);
    at.attempt(put(at.state, value));
    return shown(value);
  };
  const oninput = event => {
    try {
      take(event.target);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal; // half typed, perhaps: onchange says so
    }
  };
  const onchange = event => {
    try {
      good = event.target.value = take(event.target);
      at.keep();
    } catch (refusal) {
      at.refuse(refusal);
      event.target.value = good;
    }
  };
  return make("input", { type: "text", value: good, "aria-label": label, "data-key": label,
    autocomplete: "off", spellcheck: "false", oninput, onchange, ...more });
}
