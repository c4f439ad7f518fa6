// What the playground holds, how it is written in an address, and as NumPy code.
//
// A state has X (T, d_model), the names of the tokens, W_Q, W_K, W_V, W_O (d_model, d_model), H,
// scaled, allow (T, T; true = may attend), and what is looked at: view and cell. It is never
// changed, only replaced.

export const LIMITS = { tokens: 6, d_model: 8, name: 20, address: 20000 };
const MATRICES = ["W_Q", "W_K", "W_V", "W_O"];

// What can not be accepted, as the name of the message to show, and what to fill into it.
export class Refusal extends Error {
  constructor(word, values = {}) {
    super(word);
    this.values = values;
  }
}

const refuse = (word, values) => { throw new Refusal(word, values); };
const range = n => Array.from({ length: n }, (_, i) => i);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
export const table = (rows, columns, cell) => range(rows).map(i => range(columns).map(j => cell(i, j)));
export const eye = n => table(n, n, (i, j) => i === j ? 1 : 0);
export const everything = n => table(n, n, () => true);
export const triangle = n => table(n, n, (i, j) => j <= i);
export const isEye = W => same(W, eye(W.length));
export const divisors = n => range(n).map(i => i + 1).filter(i => n % i === 0);

export const maskOf = ({ allow }) =>
  same(allow, everything(allow.length)) ? "none" : same(allow, triangle(allow.length)) ? "causal" : "own";

// A number as readers of either language type it.
export function number(text) {
  const short = text.trim().slice(0, 30);
  if (!short) refuse("blank");
  if (!/^[+\-−]?(\d+[.,]?\d*|[.,]\d+)(e[+\-−]?\d+)?$/i.test(text.trim())) refuse("not_a_number", { text: short });
  const value = Number(text.trim().replaceAll("−", "-").replace(",", "."));
  return Number.isFinite(value) ? value : refuse("too_large", { text: short });
}

export function name(text) {
  return /^[^\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]+$/u.test(text.trim()) && text.trim().length <= LIMITS.name
    ? text.trim() : refuse("bad_name", { n: LIMITS.name });
}

// The state with everything that was left out; refused if it does not fit together.
export function complete({ X, names, H, scaled = true, allow, W_Q, W_K, W_V, W_O, view = "all", cell = null }) {
  const T = X.length, d = X[0].length, state = { X };
  const fits = (M, rows, columns) => M.length === rows && M.every(row => row.length === columns);
  if (T < 1 || T > LIMITS.tokens || d < 1 || d > LIMITS.d_model || !fits(X, T, d)) refuse("address");
  state.names = names ?? range(T).map(i => `token ${i}`);
  Object.assign(state, { W_Q, W_K, W_V, W_O, H, scaled, allow: allow ?? everything(T), view, cell });
  for (const W of MATRICES) state[W] ??= eye(d);
  const whole = state.names.length === T && divisors(d).includes(H) && fits(state.allow, T, T)
    && MATRICES.every(W => fits(state[W], d, d)) && canShow(view, H) && (!cell || hasCell(cell, state));
  return whole ? state : refuse("address");
}

export const views = H =>
  ["all", ...range(H).map(h => `head-${h + 1}`), ...(H > 1 ? ["mean", "differences"] : [])];
const canShow = (view, H) => views(H).includes(view);

// weights-h-i-j, mean-i-j, differences-h-i-j, concat-i-c, output-i-c
function hasCell(cell, { X, H }) {
  const [kind, ...at] = cell.split("-");
  const T = X.length, d = X[0].length;
  const sizes = { weights: [H, T, T], mean: [T, T], differences: [H, T, T], concat: [T, d], output: [T, d] }[kind];
  return sizes?.length === at.length && at.every((n, k) => /^\d$/.test(n) && Number(n) < sizes[k])
    && !(kind === "differences" && at[0] === "0");
}

// The address says only what differs from plain attention on blocks.
export function encode(state) {
  const rows = M => M.map(row => row.join(",")).join(";"), T = state.X.length, mask = maskOf(state);
  const parts = [`X=${rows(state.X)}`, `H=${state.H}`];
  if (!same(state.names, range(T).map(i => `token ${i}`))) parts.push(`names=${state.names.map(encodeURIComponent)}`);
  if (!state.scaled) parts.push("scaled=0");
  if (mask !== "none") parts.push(`allow=${mask === "own" ? rows(state.allow.map(row => row.map(Number))) : mask}`);
  for (const W of MATRICES) if (!isEye(state[W])) parts.push(`${W}=${rows(state[W])}`);
  if (state.view !== "all") parts.push(`view=${state.view}`);
  if (state.cell) parts.push(`cell=${state.cell}`);
  return parts.join("&");
}

export function decode(address) {
  if (address.length > LIMITS.address) refuse("address");
  try {
    const given = {};
    for (const part of address.split("&")) {
      const [key, text, more] = part.split("=");
      if (text === undefined || more !== undefined || !Object.hasOwn(READ, key) || key in given) refuse("address");
      given[key] = READ[key](key === "names" ? text : decodeURIComponent(text));
    }
    if (!given.X || !given.H) refuse("address");
    if (given.allow === "causal") given.allow = triangle(given.X.length);
    return complete(given);
  } catch (error) {
    if (error instanceof Refusal || error instanceof URIError) refuse("address");
    throw error;
  }
}

const matrix = text => text.split(";").map(row => row.split(",").map(number));
const one = pattern => text => pattern.test(text) ? text : refuse("address");
const READ = {
  X: matrix, W_Q: matrix, W_K: matrix, W_V: matrix, W_O: matrix,
  H: text => Number(one(/^\d$/)(text)),
  names: text => text.split(",").map(decodeURIComponent).map(name),
  scaled: text => Boolean(Number(one(/^[01]$/)(text))),
  allow: text => text === "causal" ? text
    : text.split(";").map(row => row.split(",").map(bit => one(/^[01]$/)(bit) === "1")),
  view: one(/^[a-z0-9-]+$/), cell: one(/^[a-z0-9-]+$/),
};

// Another size: what is there stays; tokens start at zero, projections as blocks.
export function resized(state, T, d) {
  const grown = (M, rows, columns, cell) => table(rows, columns, (i, j) => M[i]?.[j] ?? cell(i, j));
  const kind = maskOf(state), H = divisors(d).filter(n => n <= state.H).pop();
  const next = { ...state, H, cell: null, view: views(H).includes(state.view) ? state.view : "all" };
  next.X = grown(state.X, T, d, () => 0);
  next.names = range(T).map(i => state.names[i] ?? `token ${i}`);
  next.allow = kind === "causal" ? triangle(T) : grown(state.allow, T, T, () => true);
  for (const W of MATRICES) next[W] = grown(state[W], d, d, (i, j) => i === j ? 1 : 0);
  return next;
}

// The page's own code, then this state. JavaScript and Python write numbers in the same way.
export function numpy(state, code) {
  const d = state.X[0].length, T = state.X.length, mask = maskOf(state);
  const array = (M, end) => `np.array([\n${M.map(row => `    [${row.join(", ")}],\n`).join("")}]${end})`;
  const masks = { none: `np.ones((${T}, ${T}), bool)`, causal: `np.tri(${T}, dtype=bool)`,
    own: array(state.allow.map(row => row.map(Number)), ", bool") };
  return [
    code.trimEnd(), "", "",
    `tokens = [${state.names.map(name => JSON.stringify(name)).join(", ")}]`,
    `X = ${array(state.X, ", float")}`,
    ...MATRICES.map(W => `${W} = ${isEye(state[W]) ? `np.eye(${d})` : array(state[W], ", float")}`),
    `allow = ${masks[mask]}`, "",
    `A, Z, Y = layer(X, W_Q, W_K, W_V, W_O, ${state.H}, allow, ${state.scaled ? "True" : "False"})`,
    "print(A)", "print(Z)", "print(Y)", "",
  ].join("\n");
}
