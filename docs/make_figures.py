"""Draw the pictures of the README and of the docs: ``python docs/make_figures.py``.

Those of the README are made from embedded data, that of bytes from the record in results/bytes.json. With names
(``python docs/make_figures.py bytes``) only these are drawn.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image

from firstk import PrefixEncoder, SparsePrefix
from firstk.data import load_banking
from firstk.metrics import nearest_neighbor_accuracy
from theory_figures import draw_perception, draw_same_axes, draw_symmetry

IMAGES = Path(__file__).parent / "images"
BYTES_RECORD = Path(__file__).parents[1] / "results" / "bytes.json"
BYTES_CASES = {"banking77-minilm": "Banking77, MiniLM", "scifact-minilm": "SciFact, MiniLM"}
BYTES_PEERS = {
    "faiss OPQ+PQ": ("OPQ", "^"),
    "cut, rotated, equal bits": ("PCA or SVD cut, rotated, equal bits", "s"),
    "faiss PCA+RaBitQ": ("PCA, RaBitQ", "o"),
    "faiss PQ": ("PQ", "v"),
    "firstk int8": ("firstk int8", "."),
    "firstk binary": ("firstk one bit", "x"),
}
WIDTH, HEIGHT = 808, 1450  # of each half of the picture of the demo's page
SCALE = 0.66


def draw_banking(path: Path) -> None:
    """Draw accuracy against k on the embedded questions: truncation, PCA, a trained list of lengths, and ours.

    The list is trained as usual, from a random start; torch is needed for it. All are fitted on the training part and
    evaluated on the test part.
    """
    bank = load_banking()
    X, y, X_test, y_test = bank.X_train, bank.y_train, bank.X_test, bank.y_test
    matryoshka = SparsePrefix((8, 16, 32, 64))
    encoders = {
        "firstk (error_bound, no training)": PrefixEncoder(64, objective="error_bound").fit(X, y),
        "trained on a list: 8, 16, 32, 64": PrefixEncoder(
            64, objective="classification", ordering=matryoshka, init="random", random_state=0
        ).fit(X, y),
        "PCA": PrefixEncoder(64, objective="reconstruction").fit(X),
    }
    curves = {
        name: enc.curve(X_test, y_test, reference=(X, y), metric="1nn_accuracy") for name, enc in encoders.items()
    }
    every = list(range(1, 65))
    lines = {name: [curve.at(k) for k in every] for name, curve in curves.items()}
    lines["truncation"] = nearest_neighbor_accuracy(X, y, X_test, y_test, ks=every).tolist()
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    styles = {"PCA": "-.", "truncation": ":", "trained on a list: 8, 16, 32, 64": "--"}
    for name, scores in lines.items():
        axes.plot(every, scores, styles.get(name, "-"), linewidth=1.6 if name in styles else 2.4, label=name)
    raw = next(iter(curves.values())).input_score
    axes.axhline(raw, color="grey", linewidth=0.8)
    axes.annotate(f"all 384 numbers: {raw:.3f}", (1.05, raw), xytext=(0, 3), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", xlabel="numbers kept, of 384", ylabel="nearest question has the same intent", xlim=(1, 64))
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes.set_title("Questions to a bank, 77 intents, 1,001 test questions", loc="left", fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=9)
    figure.savefig(path, dpi=130)
    for name, scores in lines.items():
        print(f"{name:36}", " ".join(f"{scores[k - 1]:.3f}" for k in (4, 8, 16, 32)))


def draw_bytes(path: Path) -> None:
    """Draw recall against bytes: embedded bytes at every length, and others where they were measured."""
    record = json.loads(BYTES_RECORD.read_text("utf-8"))
    figure, both = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharex=True)
    for axes, (case, title) in zip(both, BYTES_CASES.items(), strict=True):
        found = record[f"{case} recall@10"]
        for family, (label, marker) in BYTES_PEERS.items():
            points = [(row["bytes"], row["score"]) for row in found["families"].get(family, [])]
            if points:
                axes.plot(*zip(*points, strict=True), marker=marker, linewidth=0.7, markersize=5, label=label)
        axes.plot(*zip(*found["every_length"], strict=True), color="black", linewidth=2.2, label="firstk embedded")
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xscale("log", base=2)
        axes.set_xticks([8, 16, 32, 64, 96], ["8", "16", "32", "64", "96"])
        axes.set_xlim(7.5, 100)
        axes.set_xlabel("bytes per vector")
        axes.grid(alpha=0.3)
    both[0].set_ylabel("recall@10 of exact neighbors")
    both[1].legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=130)


def draw_demo(path: Path) -> None:
    """Run the demo, open its page in headless Chromium, and show its head beside the sentences."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "firstk", "demo", "--quiet"]
        subprocess.run(command, cwd=home, check=True, stdout=subprocess.DEVNULL)
        page, tops = photographed(Path(home) / "firstk-demo" / "report.html")
    sentences = tops["Which questions are found?"]
    both = Image.new("RGB", (2 * WIDTH, HEIGHT), page.getpixel((0, 0)))
    both.paste(page.crop((0, 0, WIDTH, min(HEIGHT, sentences - 20))), (0, 0))
    both.paste(page.crop((0, sentences - 40, WIDTH, sentences - 40 + HEIGHT)), (WIDTH, 0))
    small = both.resize((round(SCALE * both.size[0]), round(SCALE * both.size[1])), Image.Resampling.LANCZOS)
    small.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def photographed(file: Path) -> tuple[Image.Image, dict[str, int]]:
    """Return the whole page as a picture, and where its headings stand."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as profile:
        for flag in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", f"user-data-dir={profile}"):
            options.add_argument(f"--{flag}")
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        browser = webdriver.Chrome(options=options, service=service)
        try:
            return _picture(browser, file)
        finally:
            browser.quit()


def _picture(browser: Any, file: Path) -> tuple[Image.Image, dict[str, int]]:
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(file.as_uri())
    height = browser.execute_script("return document.documentElement.scrollHeight")
    tops = {head.text: round(head.rect["y"]) for head in browser.find_elements("css selector", "h2")}
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"), tops


FIGURES = {
    "banking": draw_banking,
    "demo": draw_demo,
    "bytes": draw_bytes,
    "symmetry": draw_symmetry,
    "perception": draw_perception,
    "same-axes": draw_same_axes,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](IMAGES / f"{name}.png")
