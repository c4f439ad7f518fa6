// The playground: one state, the way from state to state, and the address that holds it.
// What a reader typed or an address says goes into the page as text only.

import { attend, isFinite } from "./attention.js";
import { describe, editors } from "./editors.js";
import { results, rove } from "./results.js";
import { Refusal, complete, decode, encode, numpy } from "./state.js";
import { filled, make, writer } from "./text.js";

class Playground {
  constructor(root) {
    this.root = root;
    this.small = "small" in root.dataset;
    this.words = JSON.parse(root.dataset.words);
    this.write = writer(this.words);
    this.presets = Object.fromEntries(Object.entries(JSON.parse(root.dataset.presets))
      .map(([name, preset]) => [name, complete(preset)]));
    this.state = this.kept = this.first; // kept: what undo comes back to
    this.past = [];
    this.future = [];
    this.build();
    this.drawEditors();
    this.drawResults();
    if (this.small) return this.writeAddress();
    addEventListener("hashchange", () => this.readAddress());
    this.readAddress();
  }

  get first() { return Object.values(this.presets)[0]; }
  word(key, values) { return filled(this.words[key], values); }

  // The parts that stay; what depends on the state is drawn into them.
  build() {
    const row = (...children) => make("div", { class: "row" }, ...children);
    this.link = this.root.querySelector("a[href$='playground/']");
    this.editors = make("div");
    this.results = make("div", { class: "results", role: "group", "aria-label": this.word("recomputed") });
    this.status = make("p", { class: "status", role: "status" });
    this.undoing = this.button("undo", () => this.travel(this.past, this.future), { disabled: true });
    this.redoing = this.button("redo", () => this.travel(this.future, this.past), { disabled: true });
    const steps = row(this.undoing, this.redoing, this.button("reset", () => this.to(this.first)));
    this.root.replaceChildren(...(this.small ? [] : [row(...this.examples())]), steps, this.editors,
      this.results, this.status, this.small ? make("p", {}, this.link) : this.copies(row));
    this.results.addEventListener("click", event => this.pick(event));
    this.results.addEventListener("keydown", rove);
  }

  button(word, onclick, more = {}) {
    return make("button", { type: "button", onclick, "data-key": word, ...more }, this.word(word));
  }

  // Links, so that an example can be opened in another tab and sent to others.
  examples() {
    return [make("span", {}, this.word("examples")), ...Object.keys(this.presets).map(name =>
      make("a", { id: name, href: `#${name}` }, this.words.presets[name]))];
  }

  copies(row) {
    this.code = make("code", { tabindex: 0 }); // it scrolls
    return make("div", {},
      row(this.button("copy_link", () => this.copy(location.href)),
        this.button("copy_code", () => this.copy(this.code.textContent))),
      make("details", { class: "code" }, make("summary", {}, this.word("code")),
        make("pre", {}, this.code)));
  }

  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      this.say("copied");
    } catch {
      this.say("not_copied", {}, true);
    }
  }

  say(word, values, wrong = false) {
    this.status.textContent = this.word(word, values);
    this.status.classList.toggle("wrong", wrong);
  }

  // Take another state, unless it can not be computed.
  attempt(next) {
    if (encode(next) === encode(this.state)) return;
    if (!isFinite(attend(next))) throw new Refusal("overflow");
    this.state = next;
    this.drawResults();
    describe(this);
  }

  // The reader is done with a change: it can be undone, and is in the address.
  keep() {
    if (encode(this.state) === encode(this.kept)) return;
    this.past.push(this.kept);
    this.future = [];
    this.kept = this.state;
    this.settle();
  }

  refuse(refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    this.attempt(this.kept);
    this.say(refusal.message, refusal.values, true);
  }

  // A change that is done at once, as by a button.
  to(next) {
    try {
      this.attempt(next);
      this.keep();
    } catch (refusal) {
      this.refuse(refusal);
    }
    this.drawEditors();
  }

  travel(from, onto) {
    onto.push(this.kept);
    this.attempt(this.kept = from.pop());
    const pressed = document.activeElement;
    this.settle();
    this.drawEditors();
    if (pressed.disabled) (pressed === this.undoing ? this.redoing : this.undoing).focus();
  }

  settle() {
    this.undoing.disabled = !this.past.length;
    this.redoing.disabled = !this.future.length;
    this.say("done", { T: this.state.X.length, d: this.state.X[0].length, H: this.state.H });
    this.writeAddress();
  }

  // The address names a preset or holds a state; any other anchor is none of ours.
  readAddress() {
    const hash = location.hash.slice(1), preset = Object.hasOwn(this.presets, hash);
    if (!preset && !hash.includes("=")) return;
    try {
      this.attempt(preset ? this.presets[hash] : decode(hash));
      this.keep();
    } catch (refusal) {
      this.refuse(refusal);
      this.writeAddress();
    }
    this.drawEditors();
    this.root.scrollIntoView();
  }

  writeAddress() {
    const own = encode(this.state);
    if (this.small) {
      this.link.hash = own;
      return;
    }
    const preset = Object.keys(this.presets).find(name => encode(this.presets[name]) === own);
    history.replaceState(null, "", `#${preset ?? own}`);
  }

  // What is looked at is in the address, but is nothing to undo.
  look(at) {
    this.state = { ...this.state, ...at };
    this.kept = { ...this.kept, ...at };
    this.drawResults();
    this.writeAddress();
  }

  pick(event) {
    const cell = event.target.closest("td > [data-key]")?.dataset.key;
    if (!cell) return;
    this.look({ cell: cell === this.state.cell ? null : cell });
    const title = this.results.querySelector(".trace .title");
    if (!title) return;
    this.status.textContent = title.textContent;
    this.status.classList.remove("wrong");
    if (title.getBoundingClientRect().bottom > innerHeight) title.scrollIntoView({ block: "center" });
  }

  drawEditors() {
    this.redraw(this.editors, editors(this));
  }

  drawResults() {
    this.redraw(this.results, results(this, attend(this.state)));
    for (const table of this.results.querySelectorAll(".trace table"))
      if (table.scrollWidth > table.clientWidth) table.tabIndex = 0; // the arrow keys scroll it
    if (this.small) return;
    const code = document.querySelector(".playground-code code").textContent;
    this.code.textContent = numpy(this.state, code);
  }

  // Put new elements in place of old ones; the focus and what is unfolded stay.
  redraw(place, children) {
    const key = place.contains(document.activeElement) && document.activeElement.dataset.key;
    const open = [...place.querySelectorAll("details[open]")].map(details => details.dataset.of);
    place.replaceChildren(...children);
    for (const of of open) place.querySelector(`details[data-of="${of}"]`).open = true;
    if (key) place.querySelector(`[data-key="${key}"]`)?.focus();
  }
}

for (const root of document.querySelectorAll(".playground")) new Playground(root);
