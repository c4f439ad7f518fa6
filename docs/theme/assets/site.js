// What stock Material leaves undone for keyboards and screen readers.
document.querySelector(".md-search")?.setAttribute("aria-label", document.querySelector(".md-search__input").placeholder);
for (const scroller of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset table[class]"))
  if (scroller.scrollWidth > scroller.clientWidth) scroller.tabIndex = 0;
