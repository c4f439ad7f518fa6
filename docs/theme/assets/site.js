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
