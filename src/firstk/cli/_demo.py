"""The whole job on embedded data: fit, judge, cut, save, and a page to open.

Scikit-learn's 1,797 handwritten digits stand for a user's stored vectors, and two questions are asked of them: which
digit is it (labels), and what did it look like (the vectors themselves).
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from firstk import __version__
from firstk.data import Split, load_digits, split
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.storage.folder import check_target
from firstk.estimator.fit_files import raise_if_interrupted
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.evaluation.baselines import BASELINES
from firstk.evaluation.report import Page, Section, write_page
from firstk.exceptions import TrainingWarning
from firstk.metrics.curve import EvaluationData, prefix_curve
from firstk.objectives import Fisher

KEEP = 0.99
SHOWN = (1, 2, 4, 8, 16, 32)
WIDTH = 32
# Trained, so it is left out where torch is not installed.
TRAINED = "classification (labels)"
# What the tables call a fit, and the objective behind it.
OBJECTIVES: dict[str, Any] = {
    "fisher (labels)": Fisher(shrinkage="auto"),
    TRAINED: "classification",
    "mixture (labels, shape)": "mixture",
    "similarity (no labels)": "similarity",
    "denoising (no labels)": "denoising",
}


@dataclass(frozen=True)
class Question:
    """A way to judge codes: the fits that answer it, and the metric that says how well."""

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


def run(out: Path, *, progress: bool = True) -> Path:
    """Run the demo, print its tables, and return the path of the page."""
    check_target(out / "model")  # before the work, not after it
    data = embedded_data()
    rows = sum(len(part) for part in (data.X_train, data.X_val, data.X_test))
    typer.echo(
        f"{rows:,} handwritten digits, {data.X_train.shape[1]} columns; judged on {len(data.X_test)} held out.\n"
    )
    encoders, sections = fit_and_judge(data, progress=progress)
    best = encoders[QUESTIONS[0].fits[0]]
    k = _choose(best, QUESTIONS[0].metric, data)
    model = best.save(out / "model", curve=sections[0].curves[0])
    page = write_page(out / "report.html", _page(sections, k, model, data))
    for section in sections:
        _print_table(section)
    _print_choice(sections[0].curves[0], k, model, page)
    return page


def embedded_data() -> Split:
    """Return the digits in three parts: to fit on, to choose k on, and to judge on."""
    digits = load_digits()
    return split(digits.X, digits.y, fractions=(0.6, 0.2, 0.2), centre=False)


def fit_and_judge(data: Split, *, progress: bool = False) -> tuple[dict[str, PrefixEncoder], list[Section]]:
    """Fit every objective and judge it and the baselines by every question."""
    names = [name for name in OBJECTIVES if name != TRAINED or importlib.util.find_spec("torch") is not None]
    with _bar(progress, len(names) + len(QUESTIONS)) as bar:
        encoders = {name: _fit(name, data, bar) for name in names}
        baselines = {name: make(data.X_train) for name, make in BASELINES.items()}
        return encoders, [_section(question, encoders, baselines, data, bar) for question in QUESTIONS]


@contextmanager
def _bar(shown: bool, total: int) -> Iterator[Any]:
    from tqdm import tqdm

    with tqdm(total=total, desc="fitting and judging", disable=None if shown else True, leave=False) as bar:
        yield bar


def _fit(name: str, data: Split, bar: Any) -> PrefixEncoder:
    bar.set_postfix_str(name)
    with warnings.catch_warnings():
        # It would speak of a state that is kept.
        warnings.filterwarnings("ignore", "Training was interrupted", TrainingWarning)
        encoder = PrefixEncoder(WIDTH, objective=OBJECTIVES[name], random_state=0).fit(data.X_train, data.y_train)
    raise_if_interrupted(encoder)
    bar.update()
    return encoder


def _section(
    question: Question,
    encoders: dict[str, PrefixEncoder],
    baselines: dict[str, FittedEncoder],
    data: Split,
    bar: Any,
) -> Section:
    bar.set_postfix_str(question.heading)
    ours = tuple(
        _judge(name, encoders[name].encoder_, question.metric, data) for name in question.fits if name in encoders
    )
    theirs = tuple(_judge(name, encoder, question.metric, data) for name, encoder in baselines.items())
    bar.update()
    return Section(question.heading, question.text, ours, theirs)


def _judge(name: str, encoder: FittedEncoder, metric: str, data: Split, part: str = "test") -> PrefixCurve:
    X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
    evidence = EvaluationData(X=X, y=y, X_ref=data.X_train, y_ref=data.y_train)
    return replace(prefix_curve(encoder[: min(WIDTH, encoder.d)], evidence, metric), label=name)


def _choose(encoder: PrefixEncoder, metric: str, data: Split) -> int:
    """Return the smallest k that keeps 99 % of the raw vectors' score.

    The choice is made on the validation part, so that the test part, which the tables show, has no say in it.
    """
    return _judge("", encoder.encoder_, metric, data, "val").smallest(KEEP, relative_to="input")


def _page(sections: list[Section], k: int, model: Path, data: Split) -> Page:
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
            "Everything is judged on digits that no fit has seen; the recommended k was chosen on a third part.",
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
