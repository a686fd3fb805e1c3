"""Write a page that searches 4,000 questions in the browser, without a server: ``docs/conf.py`` puts it into the site.

The page loads a module that ``to_javascript(bytes=16)`` wrote, and 16 bytes per question. The questions to ask are of
the test part, by their vectors: the model that embeds a text is not in the page.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking
from firstk.integrations.standalone import to_javascript

BYTES, ASKED = 16, 100
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Search in the browser, {bytes} bytes per vector</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 42em; margin: 2em auto; padding: 0 1em }}
select {{ width: 100%; font: inherit; padding: .3em }}
td {{ padding: .2em .8em .2em 0 }} .score {{ color: #555 }}</style>
<h1>{n:,} questions, {bytes} bytes each</h1>
<p>Choose a question. The page finds the nearest of {n:,} others from {size:,} bytes of codes instead of {raw:,} bytes
of vectors. Nothing is sent anywhere.</p>
<select id="asked" aria-label="question"></select>
<table id="found"></table>
<p class="score" id="time"></p>
<script type="module">
import {{ Codes }} from "./code.mjs";
const data = await (await fetch("questions.json")).json();
const decoded = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const codes = new Codes(decoded(data.codes));
const vectors = new Float32Array(decoded(data.vectors).buffer);
const asked = document.getElementById("asked");
data.asked.forEach((text, i) => asked.add(new Option(text, i)));
function show() {{
  const p = vectors.length / data.asked.length, i = Number(asked.value), before = performance.now();
  const hits = codes.search(vectors.subarray(i * p, (i + 1) * p), 10);
  document.getElementById("time").textContent = `${{(performance.now() - before).toFixed(1)}} ms`;
  document.getElementById("found").replaceChildren(...hits.map(({{ row, score }}) => {{
    const line = document.createElement("tr");
    for (const text of [score.toFixed(2), data.texts[row]]) line.insertCell().textContent = text;
    line.cells[0].className = "score";
    return line;
  }}));
}}
asked.addEventListener("change", show);
show();
</script></html>
"""


def write_search_page(folder: Path) -> None:
    """Write the page, the module and the codes into a folder."""
    bank = load_banking()
    stored = np.vstack([bank.X_train, bank.X_test[ASKED:]])
    encoder = PrefixEncoder(objective="similarity").fit(bank.X_train)
    codes = encoder.encoder_.quantizer(BYTES).encode(stored)
    folder.mkdir(parents=True, exist_ok=True)
    to_javascript(encoder, folder / "code.mjs", bytes=BYTES)
    data = {
        "codes": _text(codes),
        "texts": [*bank.texts_train, *bank.texts_test[ASKED:]],
        "vectors": _text(bank.X_test[:ASKED].astype("<f4")),
        "asked": [*bank.texts_test[:ASKED]],
    }
    (folder / "questions.json").write_text(json.dumps(data), "utf-8")
    page = PAGE.format(bytes=BYTES, n=len(stored), size=codes.nbytes, raw=4 * stored.size)
    (folder / "index.html").write_text(page, "utf-8")


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
