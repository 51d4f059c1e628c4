"use strict";
// Without this script every timeline but the first stays hidden, and a figure's SVG is had from beside the page alone.
const chooser = document.getElementById("run");
if (chooser) {
  const show = () => {
    for (const figure of document.querySelectorAll("[data-run]")) {
      figure.hidden = figure.dataset.run !== chooser.value;
    }
  };
  chooser.closest("label").hidden = false;
  chooser.addEventListener("change", show);
  show();
}
for (const link of document.querySelectorAll("[data-drawing]")) {
  link.addEventListener("click", () => {
    const drawing = new XMLSerializer().serializeToString(link.closest("figure").querySelector("svg"));
    link.href = URL.createObjectURL(new Blob([drawing], {type: "image/svg+xml"}));
  });
}
