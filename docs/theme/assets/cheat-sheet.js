// Printing needs a script, so the button shows only with one.
const button = document.getElementById("print");
button.hidden = false;
button.addEventListener("click", () => print());
