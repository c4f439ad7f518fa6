// The arithmetic of the playground, every step kept. It means what mha means: a blocked key weighs
// 0, and a query without keys gets zeros. Matrices are arrays of rows.

const times = (A, B) =>
  A.map(row => B[0].map((_, column) => row.reduce((sum, a, k) => sum + a * B[k][column], 0)));

const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);

// The columns of head h, as the first and the one after the last.
export const columnsOf = (h, { X, H }) => [h * X[0].length / H, (h + 1) * X[0].length / H];

// One row: what is allowed of it, as weights, with the maximum, the exponentials and their sum.
export function softmax(scores, allowed) {
  const top = Math.max(...scores.filter((_, j) => allowed[j]));
  const powers = scores.map((score, j) => allowed[j] ? Math.exp(score - top) : 0);
  const sum = powers.reduce((a, b) => a + b, 0);
  return { top, powers, sum, weights: powers.map(power => sum ? power / sum : 0) };
}

// Q, K, V, Z (concat) and Y (output) are (T, d_model); dots, scores and A are (H, T, T).
export function attend(state) {
  const [Q, K, V] = [state.W_Q, state.W_K, state.W_V].map(W => times(state.X, W));
  const heads = Array.from({ length: state.H }, (_, h) => {
    const cut = M => M.map(row => row.slice(...columnsOf(h, state)));
    const q = cut(Q), k = cut(K), width = q[0].length;
    const dots = q.map(query => k.map(key => dot(query, key)));
    const scores = dots.map(row => row.map(s => state.scaled ? s / Math.sqrt(width) : s));
    const rows = scores.map((row, i) => softmax(row, state.allow[i]));
    const weights = rows.map(row => row.weights);
    return { dots, scores, rows, weights, Z: times(weights, cut(V)) };
  });
  const Z = state.X.map((_, i) => heads.flatMap(head => head.Z[i]));
  const all = name => heads.map(head => head[name]);
  return { Q, K, V, dots: all("dots"), scores: all("scores"), rows: all("rows"),
    A: all("weights"), Z, Y: times(Z, state.W_O) };
}

// Nothing that was computed on the way is too large for a number.
export const isFinite = result =>
  [result.Q, result.K, result.V, result.dots, result.scores, result.Z, result.Y]
    .flat(3).every(Number.isFinite);
