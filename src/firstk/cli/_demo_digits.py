"""``firstk demo digits``: several objectives on images.

Scikit-learn's 1,797 handwritten digits stand for a user's stored vectors, and two questions are asked of them: which
digit is it (labels), and what did it look like (the vectors themselves). Fits and scores are those of ``firstk fit``.
"""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from firstk.cli._progress import step_progress
from firstk.exceptions import TrainingWarning

if TYPE_CHECKING:
    from firstk.contracts import Objective
    from firstk.data import Split
    from firstk.encoder.curve import PrefixCurve
    from firstk.estimator.fit_files import StreamedFit
    from firstk.evaluation.report import Page, Section

KEEP = 0.99
SHOWN = (1, 2, 4, 8, 16, 32)
WIDTH = 32
# Trained, so it is left out where torch is not installed.
TRAINED = "classification (labels)"


@dataclass(frozen=True)
class Question:
    """A way to evaluate codes: the fits that answer it, and the metric that says how well."""

    heading: str
    text: str
    metric: str
    fits: tuple[str, ...]


QUESTIONS = (
    Question(
        "Which digit is it?",
        "Share of held-out digits whose nearest training digit, by cosine of the first k coordinates, has their label.",
        "1nn_accuracy",
        ("fisher (labels)", TRAINED, "mixture (labels, shape)", "similarity (no labels)"),
    ),
    Question(
        "What did it look like?",
        "Share of the variance of held-out digits that the best linear decoder rebuilds from the first k coordinates.",
        "readback_variance",
        ("mixture (labels, shape)", "denoising (no labels)"),
    ),
)


def run(out: Path, *, quiet: bool) -> None:
    """Fit several objectives, print quality against k next to baselines, and write the page."""
    from firstk.evaluation.held_out import compare
    from firstk.evaluation.report import write_page
    from firstk.metrics.curve import EvaluationData

    data = embedded_data()
    rows = sum(len(part) for part in (data.X_train, data.X_val, data.X_test))
    typer.echo(
        f"{rows:,} handwritten digits, {data.X_train.shape[1]} columns; evaluated on {len(data.X_test)} held out.\n"
    )
    fits, sections = fit_and_evaluate(data, quiet=quiet)
    best = fits[QUESTIONS[0].fits[0]].encoder
    # Chosen on the validation part, so that the test part, which the tables show, has no part in it.
    validation = EvaluationData(X=data.X_val, y=data.y_val, X_ref=data.X_train, y_ref=data.y_train)
    curve = compare(best.encoder_, validation, QUESTIONS[0].metric, {}).ours
    k = curve.smallest(KEEP, relative_to="input")
    model = best.save(out / "model", curve=sections[0].curves[0])
    page = write_page(out / "report.html", _page(sections, k, model, data))
    for section in sections:
        _print_table(section)
    _print_choice(sections[0].curves[0], k, model, page)


def embedded_data() -> Split:
    """Return the digits in three parts: to fit on, to choose k on, and to evaluate on."""
    from firstk.data import load_digits, split

    digits = load_digits()
    return split(digits.X, digits.y, fractions=(0.6, 0.2, 0.2), centre=False)


def fit_and_evaluate(data: Split, *, quiet: bool = True) -> tuple[dict[str, StreamedFit], list[Section]]:
    """Fit every objective, and evaluate it and the baselines by the metric of every question."""
    from firstk.evaluation.baselines import baselines_of
    from firstk.evaluation.held_out import compare
    from firstk.evaluation.report import Section
    from firstk.objectives import Fisher

    objectives: dict[str, str | Objective] = {
        "fisher (labels)": Fisher(shrinkage="auto"),
        TRAINED: "classification",
        "mixture (labels, shape)": "mixture",
        "similarity (no labels)": "similarity",
        "denoising (no labels)": "denoising",
    }
    if importlib.util.find_spec("torch") is None:
        del objectives[TRAINED]
    with step_progress(lambda: len(objectives) + len(QUESTIONS), quiet=quiet, what="fitting and evaluating") as begin:
        fits = {}
        for name, objective in objectives.items():
            begin(name)
            fits[name] = _fit(objective, data)
        baselines = {name: encoder[: min(WIDTH, encoder.d)] for name, encoder in baselines_of(data.X_train).items()}
        sections = []
        for question in QUESTIONS:
            begin(question.heading)
            names = [name for name in question.fits if name in fits]
            found = [
                compare(fits[name].encoder.encoder_, fits[name].data, question.metric, {} if i else baselines)
                for i, name in enumerate(names)
            ]
            ours = tuple(replace(one.ours, label=name) for name, one in zip(names, found, strict=True))
            sections.append(Section(question.heading, question.text, ours, found[0].baselines))
        return fits, sections


def _fit(objective: str | Objective, data: Split) -> StreamedFit:
    import numpy as np

    from firstk.estimator.fit_files import fit_stream
    from firstk.estimator.prefix_encoder import PrefixEncoder
    from firstk.moments.stream import HoldOut

    encoder = PrefixEncoder(WIDTH, objective=objective, random_state=0)
    assert data.y_train is not None
    assert data.y_test is not None
    fitted_on, n = {"X": data.X_train, "y": data.y_train}, len(data.X_train)
    with warnings.catch_warnings():
        # It would say that a state is kept, and an interrupted demo keeps none.
        warnings.filterwarnings("ignore", "Training was interrupted", TrainingWarning)
        kept = HoldOut(np.arange(0), np.arange(n))
        return fit_stream(encoder, [fitted_on], kept, held={"X": data.X_test, "y": data.y_test})


def _page(sections: list[Section], k: int, model: Path, data: Split) -> Page:
    from firstk import __version__
    from firstk.evaluation.report import Page

    chosen, width = sections[0].curves[0], data.X_train.shape[1]
    return Page(
        title="Handwritten digits, cut anywhere",
        summary=(
            f"Each code below is ordered: its first k coordinates are a code of their own. The first {k} of "
            f"{chosen.label.split()[0]} find the right digit for {chosen.at(k):.1%} of held-out digits, where all "
            f"{width} raw columns find {chosen.input_score:.1%}; a stored vector becomes {width / k:.1f} times smaller."
        ),
        sections=tuple(sections),
        chosen_k=k,
        keep=KEEP,
        relative_to="input",
        facts=(
            ("training rows", len(data.X_train)),
            ("held-out rows", len(data.X_test)),
            ("columns", width),
            ("encoder saved in", str(model)),
            ("firstk", __version__),
        ),
        notes=(
            "Everything is evaluated on digits that no fit has seen; the recommended k was chosen on a third part.",
            "Baselines are drawn thin: PCA, uncentred SVD, the first k raw columns, and k raw columns drawn at random.",
        ),
    )


def _print_table(section: Section) -> None:
    typer.echo(f"{section.heading}  ({section.metric})")
    typer.echo(f"  {'k':<24}" + "".join(f"{k:>8}" for k in SHOWN))
    for curve in (*section.curves, *section.baselines):
        mark = " " if curve in section.curves else "-"
        typer.echo(f"{mark} {curve.label:<24}" + "".join(f"{curve.at(k):8.3f}" for k in SHOWN if k in curve.k))
    raw = section.curves[0].input_score
    typer.echo(f"  {'all raw columns':<24}{raw:8.3f}      (- is a baseline)\n")


def _print_choice(chosen: PrefixCurve, k: int, model: Path, page: Path) -> None:
    share = chosen.at(k) / (chosen.input_score or 1.0)
    typer.echo(f"Smallest k that keeps {KEEP:.0%} of the raw accuracy, chosen on validation rows: {k}, {chosen.label}.")
    typer.echo(f"On the held-out rows it keeps {share:.1%}.")
    typer.echo(f"Encoder saved in {model}. Cut it anywhere: PrefixEncoder.load('{model}')[:{k}]")
    typer.echo(f"Open the page: {page.resolve().as_uri()}")
