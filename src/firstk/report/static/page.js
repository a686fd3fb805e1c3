// Moves every chart and table to one k. All texts and positions were computed when the page was written;
// this script looks them up. Whatever else is to follow the slider joins `followers`.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const control = document.querySelector(".control");
  const slider = document.getElementById("k");
  const output = control.querySelector("output");
  const back = control.querySelector("button");
  const followers = [];
  let current = data.start;
  let dragging = false;

  // The longest evaluated prefix that fits into k coordinates; -1 if there is none.
  const reading = (curve, k) => curve.k.findLastIndex((own) => own <= k);

  for (const svg of document.querySelectorAll("svg.chart")) {
    const curves = data.sections[svg.dataset.section];
    const edge = (name) => Number(svg.dataset[name]);
    const cursor = svg.querySelector(".cursor");
    const text = cursor.querySelector("text");
    const dots = cursor.querySelectorAll("circle");
    followers.push((stop) => {
      const k = data.k[stop];
      const x = edge("left") + data.x[stop] * (edge("right") - edge("left"));
      cursor.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
      text.textContent = `k = ${k}`;
      for (const dot of dots) {
        const curve = curves[dot.dataset.curve];
        const at = curve.k.indexOf(k);
        dot.toggleAttribute("hidden", at < 0);
        if (at >= 0) dot.setAttribute("cy", edge("bottom") - curve.y[at] * (edge("bottom") - edge("top")));
      }
    });
    // Pointing at a chart is a shortcut for the slider.
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width;
      moveTo(nearest((x - edge("left")) / (edge("right") - edge("left"))));
    };
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointermove", (event) => event.buttons & 1 && point(event));
  }

  for (const table of document.querySelectorAll("table.at")) {
    const curves = data.sections[table.dataset.section];
    followers.push((stop) => {
      const k = data.k[stop];
      table.querySelector("caption .k").textContent = k;
      for (const row of table.querySelectorAll("tr[data-curve]")) {
        const curve = curves[row.dataset.curve];
        const at = reading(curve, k);
        row.querySelectorAll(".value").forEach((cell, column) => {
          cell.textContent = at < 0 ? "–" : curve.cells[at][column];
        });
        row.querySelector("small").textContent = at < 0 || curve.k[at] === k ? "" : `k = ${curve.k[at]}`;
      }
    });
  }

  followers.push((stop) => {
    const k = data.k[stop];
    const first = data.sections[0][0];
    const at = reading(first, k);
    const widest = data.k[data.k.length - 1];
    slider.value = data.x[stop];
    output.textContent = `k = ${k} of ${widest}`;
    slider.setAttribute(
      "aria-valuetext",
      `k = ${k} of ${widest}` + (at < 0 ? "" : `, ${first.name}: ${first.metric} ${first.cells[at][0]}`),
    );
    if (back) back.hidden = stop === data.start;
  });

  function nearest(x) {
    let best = 0;
    for (let i = 1; i < data.x.length; i += 1) {
      if (Math.abs(data.x[i] - x) < Math.abs(data.x[best] - x)) best = i;
    }
    return best;
  }

  function moveTo(stop) {
    current = Math.min(Math.max(stop, 0), data.k.length - 1);
    for (const follow of followers) follow(current);
  }

  slider.addEventListener("input", () => {
    const wanted = Number(slider.value);
    let next = nearest(wanted);
    // An arrow key moves the slider by less than the way to the next k: it means the next k.
    if (next === current && !dragging) next += Math.sign(wanted - data.x[current]);
    moveTo(next);
  });
  slider.addEventListener("pointerdown", () => { dragging = true; });
  for (const end of ["pointerup", "pointercancel", "change"]) {
    slider.addEventListener(end, () => { dragging = false; });
  }
  if (back) back.addEventListener("click", () => { moveTo(data.start); slider.focus(); });

  // Without this script the tables stand open; with it they open on demand, and for the printer.
  const folds = [...document.querySelectorAll("details")];
  for (const fold of folds) fold.open = false;
  let wereOpen = [];
  addEventListener("beforeprint", () => {
    wereOpen = folds.map((fold) => fold.open);
    for (const fold of folds) fold.open = true;
  });
  addEventListener("afterprint", () => folds.forEach((fold, i) => { fold.open = wereOpen[i]; }));

  control.hidden = data.k.length < 2;
  moveTo(current);
})();
