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
    const text = cursor.querySelector("text");  // charts of single coordinates have none
    const dots = cursor.querySelectorAll("circle");
    followers.push((stop) => {
      const k = data.k[stop];
      const x = edge("left") + data.x[stop] * (edge("right") - edge("left"));
      cursor.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
      if (text) text.textContent = `k = ${k}`;
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

  // Coordinates that are cut off fade.
  for (const mark of document.querySelectorAll(".stems [data-k], .points circle[data-k]")) {
    const own = Number(mark.dataset.k);
    followers.push((stop) => mark.classList.toggle("cut", own > data.k[stop]));
  }
  for (const line of document.querySelectorAll("p.follows")) {
    const { sentences } = data.sections[line.dataset.section];
    followers.push((stop) => { line.textContent = sentences[stop]; });
  }

  for (const table of document.querySelectorAll("table.stored")) {
    const { cells } = data.sections[table.dataset.section];
    const values = table.querySelectorAll("[data-code] .value");
    followers.push((stop) => {
      table.querySelector("caption .k").textContent = data.k[stop];
      values.forEach((value, column) => { value.textContent = cells[stop][column]; });
    });
  }

  for (const mark of document.querySelectorAll(".offers [data-offer]")) {
    const { rows } = data.sections[mark.closest(".offers").dataset.section];
    const own = Number(mark.dataset.offer);
    followers.push((stop) => mark.classList.toggle("now", own === rows[stop]));
  }

  // A slider of its own: bytes, where bits can be cut after any of them.
  for (const part of document.querySelectorAll(".by-bytes")) {
    const { bytes, cells } = data.sections[part.dataset.section].sizes;
    const input = part.querySelector("input");
    const values = part.querySelectorAll(".value");
    const marks = document.querySelectorAll(`.offers[data-section="${part.dataset.section}"] [data-bytes]`);
    const show = () => {
      const stop = Number(input.value);
      part.querySelector("caption .k").textContent = bytes[stop].toLocaleString("en");
      input.setAttribute("aria-valuetext", `${bytes[stop]} bytes: ${cells[stop][0]}`);
      values.forEach((value, column) => { value.textContent = cells[stop][column]; });
      for (const mark of marks) mark.classList.toggle("now", Number(mark.dataset.bytes) === bytes[stop]);
    };
    part.querySelector(".bytes-control").hidden = bytes.length < 2;
    input.addEventListener("input", show);
    show();
  }

  for (const group of document.querySelectorAll(".images")) followers.push(rebuilder(group));

  for (const column of document.querySelectorAll(".texts [data-code]")) {
    const { texts, labels, found } = data.sections[column.closest(".texts").dataset.section];
    const { code, query } = column.dataset;
    const items = column.querySelectorAll("li");
    followers.push((stop) => {
      column.querySelector(".k").textContent = data.k[stop];
      found[code][stop][query].forEach((row, i) => {
        const [text, label] = texts[row];
        items[i].querySelector("span").textContent = text;
        items[i].querySelector("small").textContent = label;
        items[i].classList.toggle("other", label !== labels[query]);
      });
    });
  }

  for (const table of document.querySelectorAll("table.at:not(.stored)")) {
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
    const first = data.sections[data.lead][0];
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

  // Sixteen-bit integers in base64, a scale for each row.
  function unpacked({ shape, scales, data: text }) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return scales.map((scale, row) =>
      Float64Array.from({ length: shape[1] }, (_, i) => scale * view.getInt16(2 * (row * shape[1] + i), true)));
  }

  // An image at k is mean + sum over the first k of code times row of the decoder.
  function rebuilder(group) {
    const images = data.sections[group.dataset.section];
    const [height, width, channels = 1] = images.shape;
    const [codes, decoder, [mean]] = [images.codes, images.decoder, images.mean].map(unpacked);
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const pen = canvas.getContext("2d");
    const pixels = pen.createImageData(width, height);
    const drawn = (values) => {
      for (let i = 0; i < width * height; i += 1) {
        for (let c = 0; c < 3; c += 1) {
          const value = values[i * channels + (channels === 3 ? c : 0)];
          pixels.data[4 * i + c] = Math.round((255 * (value - images.low)) / (images.high - images.low));
        }
        pixels.data[4 * i + 3] = 255;
      }
      pen.putImageData(pixels, 0, 0);
      return canvas.toDataURL();
    };
    return (stop) => {
      const k = Math.min(data.k[stop], decoder.length);
      group.setAttribute("aria-label", `Held-out images, and what k = ${k} coordinates rebuild of them`);
      for (const picture of group.querySelectorAll(".rebuilt")) {
        const sample = picture.dataset.sample;
        const values = Float64Array.from(mean);
        for (let j = 0; j < k; j += 1) {
          const z = codes[sample][j];
          decoder[j].forEach((weight, i) => { values[i] += z * weight; });
        }
        picture.src = drawn(values);
        picture.parentElement.querySelector(".share").textContent = images.shares[stop][sample];
      }
    };
  }

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
