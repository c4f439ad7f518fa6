// What stock Material leaves undone for keyboards and screen readers.
document.querySelector(".md-search")?.setAttribute("aria-label", document.querySelector(".md-search__input").placeholder);

// What scrolls takes the focus, so that the arrow keys can scroll it.
const scrollers = new ResizeObserver(entries => {
  for (const { target } of entries)
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
});
addEventListener("load", () => {
  for (const element of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset table[class]"))
    scrollers.observe(element);
});

// On a phone the menu opens when the keyboard gets there, and Escape closes it.
const drawer = document.getElementById("__drawer"), menu = document.querySelector(".md-sidebar--primary");
menu?.addEventListener("focusin", () => {
  if (menu.getBoundingClientRect().right <= 0) drawer.checked = true;
});
addEventListener("keydown", event => {
  if (event.key === "Escape") drawer.checked = false;
});

// A glossary term shows its definition under the mouse, in focus and at a tap; Escape closes it.
// Without this script it is a link with a title.
const card = document.querySelector(".definition");
if (card?.togglePopover) {
  const [words, link] = card.children;
  let closing;
  const close = () => { closing = setTimeout(() => card.togglePopover(false), 200); };
  const stay = () => clearTimeout(closing);
  card.addEventListener("pointerenter", stay);
  card.addEventListener("pointerleave", close);
  for (const term of document.querySelectorAll("a.term")) {
    const definition = term.title;
    term.ariaDescription = definition;
    term.removeAttribute("title"); // a tap can't open it, and the mouse would get both
    const open = () => {
      stay();
      words.textContent = definition;
      link.href = term.href;
      if (term.nextSibling !== card) term.after(card);
      card.togglePopover(true);
      const { left, bottom } = term.getBoundingClientRect();
      card.style.left = `${Math.max(8, Math.min(left, innerWidth - card.offsetWidth - 8)) + scrollX}px`;
      card.style.top = `${bottom + scrollY + 4}px`;
    };
    term.addEventListener("focus", open);
    term.addEventListener("pointerenter", event => { if (event.pointerType === "mouse") open(); });
    term.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") close(); });
    term.addEventListener("blur", event => { if (!card.contains(event.relatedTarget)) close(); });
    term.addEventListener("click", event => {
      if (event.pointerType !== "touch") return;
      event.preventDefault();
      open();
    });
  }
}
