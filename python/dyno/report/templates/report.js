"use strict";
// Without this script every timeline but the first stays hidden; nothing else needs it.
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
