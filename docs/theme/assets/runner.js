// Edit and Run under each block of code. Run executes the page's code from the top down to its block, as the reader
// has edited it, in a worker. A worker can be stopped at any moment; the next Run makes a new one.
const template = document.getElementById("runner");
const words = JSON.parse(template.dataset.words), root = new URL(template.dataset.root, location).href;
const STALLED = 60_000; // ms without a sign of life while Python loads

let worker, ready, timer, failed; // of the worker
let active; // the block whose Run is under way
let label = words.first;

const found = [...document.querySelectorAll("article :is(.language-python, .language-text).highlight")];
const blocks = found.filter(element => element.matches(".language-python")).map((element, number) => {
  const next = found[found.indexOf(element) + 1];
  const bar = template.content.querySelector(".runner").cloneNode(true);
  const [run, edit, reset] = bar.querySelectorAll("button");
  const block = {
    number, run, edit, reset,
    pre: element.querySelector("pre"),
    original: element.querySelector("code").textContent,
    progress: bar.querySelector("progress"),
    status: bar.querySelector("[role=status]"),
    built: next?.matches(".language-text") ? next : undefined, // what the build has printed
    own: bar.querySelector(".highlight"), // what this browser prints
  };
  bar.setAttribute("aria-label", `${words.code} ${number + 1}`);
  run.onclick = () => (block === active ? halt(words.stopped) : start(block));
  edit.onclick = () => open(block);
  reset.onclick = () => restore(block);
  element.append(bar);
  return block;
});
blocks[0].run.closest(".runner").after(template.content.querySelector(".runner-hint"));
for (const block of blocks) block.of = upTo(block).join("\0");

function upTo({ number }) {
  return blocks.slice(0, number + 1).map(({ area, original }) => area?.value ?? original);
}

function start(block) {
  active = block;
  failed = undefined;
  block.sent = upTo(block);
  if (!worker) {
    const mine = new Worker(new URL("runner-worker.js", import.meta.url), { type: "module" });
    mine.onmessage = ({ data: [kind, ...values] }) => mine === worker && on[kind](...values);
    mine.onerror = ({ message }) => mine === worker && on.broken(message ?? "runner-worker.js");
    worker = mine;
    ready = false;
    block.progress.value = 0;
    on.received(0);
  }
  block.status.textContent = ready ? words.running : words.loading;
  worker.postMessage({ root, blocks: block.sent });
  draw();
}

const on = { // what a worker tells
  received(bytes) {
    if (ready) return;
    active.progress.value += bytes;
    clearTimeout(timer);
    timer = setTimeout(() => halt(words.stalled), STALLED);
  },
  started() {
    clearTimeout(timer);
    ready = true;
    label = words.run;
    active.status.textContent = words.running;
    draw();
  },
  shown(number, text, isError) {
    const block = blocks[number];
    block.own.querySelector("code").textContent = text;
    block.own.hidden = !text;
    if (block.built) block.built.hidden = true;
    block.of = active.sent.slice(0, number + 1).join("\0");
    block.ran = true;
    if (isError) failed = block;
  },
  ended() {
    end(!failed ? words.done : failed === active ? words.failed : words.failed_above);
  },
  broken(why) {
    halt(`${words.broken} (${why})`);
  },
};

function halt(text) {
  clearTimeout(timer);
  worker.terminate();
  worker = undefined;
  end(text);
}

function end(text) {
  active.status.textContent = text;
  active = undefined;
  draw();
}

function open(block) {
  const area = document.createElement("textarea");
  Object.assign(area, { value: block.original, spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off" });
  area.setAttribute("aria-label", `${words.code} ${block.number + 1}`);
  const fit = () => {
    const lines = area.value.split("\n");
    area.rows = lines.length;
    area.cols = Math.max(...lines.map(line => line.length)) + 2;
  };
  fit();
  area.oninput = () => {
    fit();
    if (!active) block.status.textContent = "";
    draw();
  };
  block.pre.hidden = true;
  block.pre.after(area);
  block.area = area;
  draw();
  area.focus();
  area.setSelectionRange(0, 0);
}

function restore(block) {
  block.area?.remove();
  block.pre.hidden = false;
  block.own.hidden = true;
  if (block.built) block.built.hidden = false;
  block.area = block.ran = undefined;
  block.of = blocks.slice(0, block.number + 1).map(({ original }) => original).join("\0");
  block.status.textContent = "";
  draw();
  block.edit.focus();
}

// Everything that follows from the state. An output says when it is not that of the code above it.
function draw() {
  for (const block of blocks) {
    block.run.textContent = block === active ? words.stop : label;
    block.run.disabled = active && block !== active;
    block.edit.disabled = block.reset.disabled = Boolean(active);
    block.edit.hidden = Boolean(block.area);
    block.reset.hidden = !block.area && !block.ran;
    block.progress.hidden = block !== active || ready;
    const stale = block.of !== upTo(block).join("\0");
    for (const output of [block.own, block.built])
      if (output) output.dataset.note = stale ? words.stale : output === block.own ? words.here : "";
  }
}
draw();
