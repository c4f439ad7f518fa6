// Where a number comes from: every product and sum that made it, with the reader's own numbers.

import { columnsOf } from "./attention.js";
import { filled, make } from "./text.js";

export function traced(at, result) {
  const [kind, ...where] = at.state.cell.split("-");
  return new Trace(at, result)[kind](...where.map(Number));
}

class Trace {
  constructor({ state, write, small, words }, result) {
    Object.assign(this, { state, write, small, result, words: words.trace, names: state.names });
  }

  word(key, values) { return filled(this.words[key], values); }
  n(value) { return this.write.number(value); }
  factor(value) { return value < 0 ? `(${this.n(value)})` : this.n(value); }
  columns(h) {
    const [from, to] = columnsOf(h, this.state);
    return Array.from({ length: to - from }, (_, c) => from + c);
  }

  // "2 · 0,5 + 1 · (−1)"; what is multiplied by zero is left out.
  sum(left, right) {
    const terms = left.map((a, k) => [a, right[k]]).filter(([a, b]) => a && b);
    return terms.map(pair => pair.map(value => this.factor(value)).join(" · ")).join(" + ") || "0";
  }

  line(name, how, value) {
    const text = this.n(value);
    return make("p", { class: "line" }, how === text ? `${name} = ${text}` : `${name} = ${how} = ${text}`);
  }

  step(title, ...lines) { return make("li", {}, make("p", {}, title), ...lines); }

  all(title, ...steps) {
    return [make("p", { class: "title" }, title), make("ol", {}, ...steps), make("p", { class: "note" }, this.word("note"))];
  }

  // q[c], k[c] or v[c] of a token, in the columns of one head.
  projected(kind, i, columns) {
    const letter = kind.toLowerCase(), W = this.state[`W_${kind}`], row = this.state.X[i];
    return this.step(this.word(`project_${letter}`, { token: this.names[i] }), ...columns.map(c =>
      this.line(`${letter}[${c}]`, this.sum(row, W.map(w => w[c])), this.result[kind][i][c])));
  }

  weights(h, i, j) {
    const { A, dots, scores, rows } = this.result, columns = this.columns(h), row = rows[h][i];
    const cut = M => columns.map(c => M[c]), dot = dots[h][i][j], blocked = !this.state.allow[i][j];
    const scaled = this.state.scaled ? this.line("s", `${this.factor(dot)} / √${columns.length}`, scores[h][i][j]) : "";
    const weight = blocked ? this.line(this.word("weight"), "0", 0)
      : this.line(this.word("weight"), `${this.n(row.powers[j])} / ${this.n(row.sum)}`, A[h][i][j]);
    return this.all(this.title("weights", h, i, j, A[h][i][j]),
      this.projected("Q", i, columns), this.projected("K", j, columns),
      this.step(this.word(this.state.scaled ? "score" : "unscaled"),
        this.line("q · k", this.sum(cut(this.result.Q[i]), cut(this.result.K[j])), dot), scaled),
      this.step(this.word(row.sum ? "softmax" : "no_keys", { query: this.names[i], top: this.n(row.top) }), this.row(h, i), weight),
      ...this.onward(h, i, j, columns));
  }

  // From one weight to the head's output, and on to the layer's.
  onward(h, i, j, columns) {
    const { Z, Y, V, A } = this.result;
    const steps = [this.projected("V", j, columns),
      this.step(this.word("average", { query: this.names[i] }), ...columns.map(c =>
        this.line(`z[${c}]`, this.sum(A[h][i], V.map(v => v[c])), Z[i][c])))];
    return this.small ? steps : [...steps, this.step(this.word("mix"), ...Y[i].map((y, c) => this.mixed(i, c)))];
  }

  mixed(i, c) {
    return this.line(`y[${c}]`, this.sum(this.result.Z[i], this.state.W_O.map(w => w[c])), this.result.Y[i][c]);
  }

  // The softmax of a whole row: every key, and the sum.
  row(h, i) {
    const { scores, rows, A } = this.result, { top, powers, sum } = rows[h][i], total = A[h][i].reduce((a, b) => a + b, 0);
    const cells = (tag, ...texts) => texts.map(text => make(tag, tag === "th" ? { scope: "col" } : {}, text));
    const line = (name, ...texts) => make("tr", {}, make("th", { scope: "row" }, name), ...cells("td", ...texts));
    return make("table", { class: "row-of-scores", "aria-label": this.word("row", { query: this.names[i] }) },
      make("thead", {}, make("tr", {}, ...cells("th", "key", "s", "s − max", "exp(s − max)", this.word("weight")))),
      make("tbody", {}, ...this.names.map((name, j) => this.state.allow[i][j]
        ? line(name, this.n(scores[h][i][j]), this.n(scores[h][i][j] - top), this.n(powers[j]), this.n(A[h][i][j]))
        : line(name, this.n(scores[h][i][j]), this.word("blocked"), "0", "0")),
      line(this.word("sum"), "", "", this.n(sum), this.n(total))));
  }

  mean(i, j) {
    const weights = this.result.A.map(head => head[i][j]), value = weights.reduce((a, b) => a + b, 0) / weights.length;
    return this.all(this.title("mean", 0, i, j, value), this.step(this.word("mean_of", { H: weights.length }),
      this.line(this.word("weight"), `(${weights.map(w => this.n(w)).join(" + ")}) / ${weights.length}`, value)));
  }

  differences(h, i, j) {
    const [one, other] = [this.result.A[h][i][j], this.result.A[0][i][j]];
    return this.all(this.title("differences", h, i, j, one - other), this.step(this.word("difference_of", { h: h + 1 }),
      this.line(this.word("difference"), `${this.n(one)} − ${this.n(other)}`, one - other)));
  }

  concat(i, c) {
    const { A, V, Z } = this.result, h = this.headOf(c);
    return this.all(this.title("concat", h, i, c, Z[i][c]), ...this.names.map((_, j) => this.projected("V", j, [c])),
      this.step(this.word("average", { query: this.names[i] }), this.line(`z[${c}]`, this.sum(A[h][i], V.map(v => v[c])), Z[i][c])));
  }

  // What each head writes into this column, and the sum.
  output(i, c) {
    const { Z, Y } = this.result, W = this.state.W_O.map(row => row[c]);
    const parts = this.result.A.map((_, h) => this.columns(h).reduce((sum, k) => sum + Z[i][k] * W[k], 0));
    return this.all(this.title("output", 0, i, c, Y[i][c]),
      this.step(this.word("parts", { c }), ...parts.map((part, h) =>
        this.line(`head ${h + 1}`, this.sum(this.columns(h).map(k => Z[i][k]), this.columns(h).map(k => W[k])), part))),
      this.step(this.word("added"), this.line(`y[${c}]`, parts.map(part => this.factor(part)).join(" + "), Y[i][c])));
  }

  headOf(c) { return this.result.A.findIndex((_, h) => this.columns(h).includes(c)); }

  title(kind, h, i, j, value) {
    return this.word(`title_${kind}`, { h: h + 1, query: this.names[i], key: this.names[j], c: j, value: this.write.fixed(value) });
  }
}
