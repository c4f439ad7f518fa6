// Pointing at a head lights it in every layout: by mouse on a picture, by keyboard and finger on its button.
const parts = [...document.querySelectorAll(".heads [data-heads]")];
const owners = part => part.dataset.heads.split(" ");
const numbers = [...new Set(parts.flatMap(owners))].sort();
let pinned = [];

function light(heads) {
  for (const part of parts) {
    const lit = owners(part).some(head => heads.includes(head));
    part.classList.toggle("on", lit);
    part.classList.toggle("off", heads.length > 0 && !lit);
  }
}

function pin(head) {
  pinned = pinned.includes(head) ? [] : [head];
  for (const button of document.querySelectorAll(".head-buttons button"))
    button.setAttribute("aria-pressed", pinned.includes(button.value));
  light(pinned);
}

for (const bar of document.querySelectorAll(".head-buttons")) {
  for (const head of numbers) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value: head, textContent: `head ${head}` });
    button.setAttribute("aria-pressed", false);
    button.addEventListener("click", () => pin(head));
    for (const [event, heads] of [["focus", [head]], ["pointerenter", [head]], ["blur", null], ["pointerleave", null]])
      button.addEventListener(event, () => light(heads ?? pinned));
    bar.append(button);
  }
  bar.hidden = false;
}
for (const part of parts) {
  part.addEventListener("pointerenter", () => light(owners(part)));
  part.addEventListener("pointerleave", () => light(pinned));
}
