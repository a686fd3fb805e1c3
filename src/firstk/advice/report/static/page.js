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

  const textOf = (element, stop) => data.strings[data.texts[element.dataset.text][stop]];
  const follow = (elements, stop) => { for (const one of elements) one.textContent = textOf(one, stop); };

  for (const svg of document.querySelectorAll("svg.chart")) {
    const heights = data.heights[svg.dataset.chart];
    const edge = (name) => Number(svg.dataset[name]);
    const cursor = svg.querySelector(".cursor");
    const text = cursor.querySelector("text");  // charts of single coordinates have none
    const dots = cursor.querySelectorAll("circle");
    followers.push((stop) => {
      const x = edge("left") + data.x[stop] * (edge("right") - edge("left"));
      cursor.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
      if (text) text.textContent = `k = ${data.k[stop]}`;
      for (const dot of dots) {
        const y = heights[dot.dataset.curve][stop];
        dot.toggleAttribute("hidden", y === null);
        if (y !== null) dot.setAttribute("cy", edge("bottom") - y * (edge("bottom") - edge("top")));
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
  for (const mark of document.querySelectorAll("[data-k]")) {
    const own = Number(mark.dataset.k);
    followers.push((stop) => mark.classList.toggle("cut", own > data.k[stop]));
  }

  // Of the lengths in a table and its chart, the longest that fits is marked.
  for (const section of document.querySelectorAll("section:has(tr[data-fit])")) {
    const marks = [...section.querySelectorAll("[data-fit]")];
    const lengths = marks.map((mark) => Number(mark.dataset.fit));
    followers.push((stop) => {
      const fits = Math.max(...lengths.filter((own) => own <= data.k[stop]));
      marks.forEach((mark, i) => mark.classList.toggle("now", lengths[i] === (fits > 0 ? fits : Math.min(...lengths))));
    });
  }

  // A slider of its own: bytes, where bits can be cut after any of them.
  const bySize = new Set();
  for (const part of document.querySelectorAll(".by-bytes")) {
    const sizes = part.dataset.stops.split(" ").map(Number);
    const input = part.querySelector("input");
    const texts = [...part.querySelectorAll("[data-text]")];
    const score = part.querySelector("td [data-text]");
    const marks = part.closest("section").querySelectorAll("[data-bytes]");
    texts.forEach((one) => bySize.add(one));
    const show = () => {
      const stop = Number(input.value);
      follow(texts, stop);
      input.setAttribute("aria-valuetext", `${sizes[stop]} bytes: ${score.textContent}`);
      for (const mark of marks) mark.classList.toggle("now", Number(mark.dataset.bytes) === sizes[stop]);
    };
    part.querySelector(".bytes-control").hidden = sizes.length < 2;
    input.addEventListener("input", show);
    show();
  }

  const texts = [...document.querySelectorAll("[data-text]")].filter((one) => !bySize.has(one));
  followers.push((stop) => follow(texts, stop));

  // Texts of another class than the query's are struck out.
  for (const item of document.querySelectorAll(".texts li:has([data-text])")) {
    const label = item.querySelector("small");
    const wanted = item.closest("article").dataset.label;
    followers.push(() => item.classList.toggle("other", label.textContent !== wanted));
  }

  for (const group of document.querySelectorAll(".images")) followers.push(rebuilder(group));

  followers.push((stop) => {
    slider.value = data.x[stop];
    output.textContent = `k = ${data.k[stop]} of ${data.k[data.k.length - 1]}`;
    slider.setAttribute("aria-valuetext", data.strings[data.texts[data.said][stop]]);
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
    const images = data.images[group.dataset.images];
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
