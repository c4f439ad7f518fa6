// A line of a listing and what is said about it light each other up: under the pointer, in focus,
// at a tap, and where the address leads.
for (const walkthrough of document.querySelectorAll(".walkthrough")) {
  const steps = [...walkthrough.querySelectorAll("dt")].map(term => {
    const lines = [...term.querySelectorAll("a.lines")].flatMap(link => {
      const [, name, first, last = first] = link.hash.match(/^#(.+?)-(\d+)(?:-(\d+))?$/);
      const numbers = Array.from({ length: last - first + 1 }, (_, i) => +first + i);
      return numbers.flatMap(number => document.getElementById(`${name}-${number}`)?.parentElement ?? []);
    });
    return { words: [term, term.nextElementSibling], lines };
  });

  function light(element) {
    for (const part of walkthrough.querySelectorAll(".lit")) part.classList.remove("lit");
    const lit = steps.filter(({ words, lines }) => [...words, ...lines].some(part => part.contains(element)));
    for (const { words, lines } of lit)
      for (const part of [...words, ...lines]) part.classList.add("lit");
    return lit;
  }

  // An address stands at the beginning of its line or range: what follows it is in the first line.
  const lightTarget = () => light(document.getElementById(location.hash.slice(1))?.nextElementSibling ?? null);

  walkthrough.addEventListener("pointerover", event => light(event.target));
  walkthrough.addEventListener("pointerleave", lightTarget);
  walkthrough.addEventListener("focusin", event => light(event.target));
  walkthrough.addEventListener("focusout", lightTarget);
  walkthrough.addEventListener("click", event => {
    if (event.target.closest("dl")) return;
    for (const { words } of light(event.target)) words[1].scrollIntoView({ block: "nearest" });
  });
  addEventListener("hashchange", lightTarget);
  lightTarget();
}
