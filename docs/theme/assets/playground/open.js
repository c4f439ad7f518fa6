// On its own page the playground starts at once; a small copy when a reader unfolds it.
const open = () => import("./playground.js");
const near = new IntersectionObserver(entries => {
  if (!entries.some(entry => entry.isIntersecting)) return;
  near.disconnect();
  open();
});
for (const root of document.querySelectorAll(".playground"))
  if ("small" in root.dataset) near.observe(root);
  else open();
