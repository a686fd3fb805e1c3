"""Curves, a page and a browser for the tests of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstk.advice.report import Page, Section, write_page
from firstk.quality.curve import PrefixCurve

KS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NASTY = "</script><script>alert('label')</script>"


def make_curve(label: str, rate: float, ks: tuple[int, ...] = KS, **fields: object) -> PrefixCurve:
    """Make a curve that rises like 1 - exp(-k / rate), up to 0.9."""
    scores = [0.9 * (1 - 2.718281828 ** (-k / rate)) for k in ks]
    values = {"metric": "accuracy", "input_score": 0.92, "label": label, **fields}
    return PrefixCurve(k=ks, score=scores, **values)


@pytest.fixture(scope="session")
def page() -> Page:
    """Return a page with two sections, a curve that ends early, and a label that tries to break out."""
    short = make_curve("fisher", 3, ks=KS[:6])
    baselines = [make_curve(label, rate) for label, rate in (("PCA", 8), ("random dimensions", 40), (NASTY, 60))]
    accuracy = Section("Accuracy", "How often it is right.", [make_curve("ours", 4), short], baselines)
    loss = PrefixCurve(k=(1, 4, 64), score=(2.0, 1.0, 0.5), metric="loss", higher_is_better=False, label="ours")
    return Page(
        "Digits & <b>more</b>",
        "Twelve coordinates of 64 do.",
        [accuracy, Section("Loss", curves=[loss])],
        chosen_k=12,
        keep=0.95,
        facts={"Rows": 1_234_567, "Objective": "fisher", "Encoder": "model/" + "x" * 90},
        notes=["Held-out rows only."],
    )


@pytest.fixture(scope="session")
def page_file(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page as a file."""
    return write_page(tmp_path_factory.mktemp("report") / "report.html", page)
