// The table's formula for sizes of one's own: bytes = 2 * layers * H_kv * d_k * tokens * bytes per number.
const calculator = document.querySelector(".calculator");
const field = name => calculator.querySelector(`[name=${name}]`);
const written = new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: 4 });
const SIZES = { float32: 4, "float16, bfloat16": 2, int8: 1 };
const COLUMNS = ["layers", "d_model", "H", "H_kv"];

function show(name, value) {
  field(name).textContent = Number.isFinite(value) ? written.format(value) : "–";
}

function compute() {
  const n = Object.fromEntries([...COLUMNS, "tokens"].map(name => [name, Number(field(name).value)]));
  const whole = name => Number.isInteger(n[name]) && n[name] > 0;
  const wrong = {
    H: n.d_model % n.H !== 0,
    H_kv: n.H % n.H_kv !== 0,
  };
  for (const name in n) field(name).setAttribute("aria-invalid", !whole(name) || Boolean(wrong[name]));
  const bad = calculator.querySelector("[aria-invalid=true]");
  const token = bad ? NaN : 2 * n.layers * n.H_kv * (n.d_model / n.H) * SIZES[field("size").value];
  show("token", token / 2 ** 10);
  show("total", token * n.tokens / 2 ** 30);
  show("full", token * n.tokens / n.H_kv * n.H / 2 ** 30);
}

const models = [...document.querySelectorAll(".models tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
field("model").append(...models.map(([name], i) => new Option(name, i)));
field("size").append(...Object.keys(SIZES).map(name => new Option(name)));
field("size").selectedIndex = 1;
field("tokens").value = 8192;

function fill() {
  COLUMNS.forEach((name, i) => { field(name).value = models[field("model").value][i + 1].replace(/\D/g, ""); });
  compute();
}

field("model").addEventListener("change", fill);
calculator.addEventListener("input", event => { if (event.target.name !== "model") compute(); });
field("model").selectedIndex = models.findIndex(([, , , H, shared]) => H !== shared); // the first whose heads share keys
fill();
calculator.hidden = false;
