"""Records that are made by hand, pages of them, and golden files for the tests of reports.

A golden file holds what a renderer writes of these records. To write all of them anew, after a look at the pages:
``FIRSTK_GOLDEN=write python -m pytest tests/advice/report``; then read the difference in git.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from firstk.advice.records import AxisStatistics, ImageSamples, Report
from firstk.advice.report import Page, Section, curve_section, storage_section, write_page
from firstk.advice.text_neighbors import TextNeighbors
from firstk.quality.choice import RAW, Point
from firstk.quality.curve import PrefixCurve
from firstk.quality.evaluation import Evaluation, Packed

KS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NASTY = "</script><script>alert('label')</script>"


def make_curve(label: str, rate: float, ks: tuple[int, ...] = KS, **fields: object) -> PrefixCurve:
    """Make a curve that rises like 1 - exp(-k / rate), up to 0.9."""
    scores = [0.9 * (1 - 2.718281828 ** (-k / rate)) for k in ks]
    values = {"metric": "accuracy", "input_score": 0.92, "label": label, **fields}
    return PrefixCurve(k=ks, score=scores, **values)


def make_evaluation(metric: str = "1nn_accuracy", ahead: str = "", **fields: object) -> Evaluation:
    """Make an evaluation of vectors of 32 numbers, with draws; the baseline `ahead` is clearly better."""
    points = [Point(8, "embedded", size, score) for size, score in ((1, 0.55), (2, 0.78), (4, 0.88))]
    for k, score in ((2, 0.6), (4, 0.8), (8, 0.9)):
        for code, less in (("", 0.0), ("PCA", 0.1), ("plain truncation", 0.3)):
            less = -0.015 if code and code == ahead else less
            points.append(Point(k, "float32", 4 * k, round(score - less, 3), code=code))
            points.append(Point(k, "int8", k, round(score - less - 0.01, 3), code=code))
    points += [Point(32, "float32", 128, 0.92, code=RAW), Point(32, "int8", 32, 0.91, code=RAW)]
    made = Evaluation(points, metric, 0.92, 128, "fisher", n_evaluated=200, **fields)
    noise = [0.01 * np.sin(np.arange(20) + place % 5) for place in range(len(made.points))]
    draws = [point.score + some for point, some in zip(made.points, noise, strict=True)]
    return replace(made, draws=Packed.of(draws))


def make_report(evaluation: Evaluation | None = None, **fields: object) -> Report:
    """Make the report of a fit, with all that one may have; it asks for 95 %."""
    lead = make_evaluation() if evaluation is None else evaluation
    axes = AxisStatistics(
        spectrum=(4.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.25, 0.125),
        magnitude=(2.0, 1.5, 1.25, 1.0, 0.9, 0.8, 0.7, 0.6),
        variance=(4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.0625),
        usefulness=(0.5, 0.4, 0.45, 0.3, 0.25, 0.2, 0.15, 0.1),
        measure="1‑D probe accuracy",
        chance=0.1,
        rank_correlation=0.976,
        pinned=8,
    )
    grey = np.arange(16).reshape(2, 8) / 16
    images = ImageSamples(
        shape=(2, 4),
        names=("zero", "<one>"),
        originals=Packed.of(grey),
        codes=Packed.of([[1.0, 0.5, 0.25, 0.0], [-1.0, 0.5, 0.0, 0.25]]),
        decoder=Packed.of(np.eye(4, 8) / 4),
        mean=Packed.of(grey.mean(axis=0)),
        low=0.0,
        high=1.0,
    )
    probe = make_evaluation("probe_accuracy")
    given = {
        "facts": {"file": "digits.npz", "rows fitted on": 1438, "noise": 0.25},
        "rows": 1000,
        "columns": 32,
        "itemsize": 4,
        "held_out": "Evaluated on 200 rows.",
        "evaluations": (lead, probe),
        "choice": lead.choose(keep=0.95),
        "axes": axes,
        "images": images,
        "notes": ("A note.",),
    }
    return Report(**given | fields)


@pytest.fixture(scope="session")
def page() -> Page:
    """Return a page with two charts, a curve that ends early, texts, and a label that tries to break out."""
    short = make_curve("fisher", 3, ks=KS[:6])
    baselines = [make_curve(label, rate) for label, rate in (("PCA", 8), ("random dimensions", 40), (NASTY, 60))]
    loss = PrefixCurve(k=(1, 4, 64), score=(2.0, 1.0, 0.5), metric="loss", higher_is_better=False, label="ours")
    found = np.array([[[0, 1]], [[1, 0]], [[1, 2]]])
    stored = ("one", "two <b>", "three"), ("x", "y", "x")
    texts = TextNeighbors(("a <b>?",), ("x",), *stored, {"": found[:1], "ours": found})
    return Page(
        "Digits & <b>more</b>",
        "Twelve coordinates of 64 do.",
        [
            curve_section("Accuracy", "How often it is right.", [make_curve("ours", 4), short], baselines),
            curve_section("Loss", "", [loss]),
            Section("Texts", "What is found.", [texts]),
            storage_section("Bytes", "", rows=10, columns=64, itemsize=4, ks=KS, precisions=["int8"]),
        ],
        chosen_k=12,
        facts={"Rows": 1_234_567, "Objective": "fisher", "Encoder": "model/" + "x" * 90},
        notes=["Held-out rows only."],
        figures=[("12", "coordinates of 64")],
        commands=["store <here>"],
    )


@pytest.fixture(scope="session")
def page_file(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page as a file."""
    return write_page(tmp_path_factory.mktemp("report") / "report.html", page)


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a golden file, or write that file."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "golden" / name
        if os.environ.get("FIRSTK_GOLDEN") == "write":
            file.write_text(text, encoding="utf-8")
        assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()

    return compare
