// The playground itself is loaded when a reader comes near it, or unfolds it.
const near = new IntersectionObserver(entries => {
  if (!entries.some(entry => entry.isIntersecting)) return;
  near.disconnect();
  import("./playground.js");
}, { rootMargin: "300px" });
for (const root of document.querySelectorAll(".playground")) near.observe(root);
