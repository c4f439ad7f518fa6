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
