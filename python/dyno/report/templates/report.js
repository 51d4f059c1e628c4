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
const counters = document.getElementById("counters");
if (counters) {
  const section = document.getElementById("database");
  counters.closest("label").hidden = false;
  counters.addEventListener("input", () => {
    const wanted = counters.value.trim().toLowerCase();
    for (const row of section.querySelectorAll("[data-name]")) {
      row.hidden = !row.dataset.name.includes(wanted);
    }
    for (const others of section.querySelectorAll("[data-others]")) {
      others.open = wanted !== "";
    }
  });
}
