"""``firstk demo``: fit, evaluate, cut, save, and a page to open, on built-in data."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._progress import step_progress
from firstk.exceptions import TrainingWarning

if TYPE_CHECKING:
    from firstk.advice.report import Page
    from firstk.advice.text_neighbors import TextNeighbors
    from firstk.data import LabelledTexts
    from firstk.data.task import Rows
    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.prefix_encoder import PrefixEncoder
    from firstk.objectives import ObjectiveName
    from firstk.quality.choice import Offer
    from firstk.quality.evaluation import Evaluation


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the encoder and the page.")] = Path("firstk-demo"),
) -> None:
    """Do the whole job on built-in data, in seconds: fit, evaluate, cut, save, and write a page to open.

    On embeddings of 4,000 questions to a bank it compares the first 4, 8, 16 and 32 numbers of the raw vectors, of
    random dimensions, of PCA and of firstk with all 384. It names the cheapest code that keeps 99 % of the accuracy,
    and prints the nearest sentences that each finds.
    """
    from firstk.encoder.storage.folder import check_target

    check_target(out / "model")  # before the work, not after it
    run(out)


METRIC, KEEP, ROWS = "1nn_accuracy", 0.99, 10_000_000
SHOWN, WIDTH, SENTENCES_AT = (4, 8, 16, 32), 64, 8
OURS, TRAINED = "firstk, error_bound", "firstk, classification"
TRUNCATION = "plain truncation"
BASELINES = (TRUNCATION, "random dimensions", "PCA")
# Coordinates as numbers: the page has a slider over them, and bits are cut otherwise.
PRECISIONS = ("float32", "float16", "int8", "int4")
# Questions on the page, drawn at random with this seed; the first few are printed.
QUESTIONS, PRINTED, NEAREST, SEED = 8, 3, 3, 0
# From docs/benchmarks.md: all 10,003 training questions of Banking77, 1-NN on its test part at k = 4, 8, 16, 32.
ON_ALL_QUESTIONS = {"error_bound": "0.624, 0.869, 0.910, 0.921", "classification": "0.629, 0.867, 0.914, 0.923"}


@dataclass(frozen=True, eq=False)
class Parts:
    """The questions, and which of the training part are learned from and chosen on."""

    bank: LabelledTexts
    fitted: Rows
    chosen_on: Rows
    test: Rows

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many questions are learned from, chosen on and tested on."""
        fitted, chosen_on, test = (part.n for part in (self.fitted, self.chosen_on, self.test))
        return fitted, chosen_on, test


def run(out: Path) -> None:
    """Fit, evaluate, choose, save, print and write the page."""
    from firstk.advice.report import write_page

    with step_progress("fitting and evaluating", quiet=False) as begin:
        parts = embedded_parts()
        encoders = fitted(parts, begin)
        begin("curves")
        found = evaluated(parts, {name: encoder.encoder_ for name, encoder in encoders.items()})
        begin("bytes")
        choice, kept = chosen(encoders[OURS].encoder_, parts)
        begin("sentences")
        sentences = neighbors(parts, encoders[OURS].encoder_)
    # Rows that the fit has not seen are at hand: a profile of its own rows would take two further fits.
    model = encoders[OURS].save(out / "model", curve=found.curve(), held_out=(parts.chosen_on.X, parts.chosen_on.y))
    page = write_page(out / "report.html", page_of(parts, found, choice, kept, sentences, model))
    _print_scores(parts, found, trained=TRAINED in encoders)
    _print_choice(parts, choice, kept)
    _print_sentences(sentences)
    typer.echo(f"\nEncoder saved in {model}. Cut it anywhere: PrefixEncoder.load('{model}')[:{choice.point.k}]")
    typer.echo("On your own vectors: firstk diagnose vectors.npz --label COLUMN, which ends with the next command.")
    typer.echo(f"Open the page, whose slider moves the sentences too: {page.resolve().as_uri()}")


def embedded_parts() -> Parts:
    """Return the embedded questions in three parts: to learn from, to choose on, to test on."""
    from firstk.data import load_banking
    from firstk.data.task import Rows
    from firstk.estimator.fit_files import draw

    bank = load_banking()
    drawn = draw(len(bank.X_train), 0.2, SEED)
    X, y = bank.X_train[drawn.reference], bank.y_train[drawn.reference]
    return Parts(
        bank=replace(
            bank,
            X_train=X,
            y_train=y,
            texts_train=tuple(bank.texts_train[i] for i in drawn.reference),
            ids_train=tuple(bank.ids_train[i] for i in drawn.reference),
        ),
        fitted=Rows(X, y),
        chosen_on=Rows(bank.X_train[drawn.held], bank.y_train[drawn.held], reference=Rows(X, y)),
        test=Rows(bank.X_test, bank.y_test, reference=Rows(X, y)),
    )


def fitted(parts: Parts, begin: Callable[[str], None]) -> dict[str, PrefixEncoder]:
    """Return ours, and the trained one where torch is installed."""
    from firstk.estimator.prefix_encoder import PrefixEncoder

    objectives: dict[str, ObjectiveName] = {OURS: "error_bound"}
    if torch_is_installed():
        objectives[TRAINED] = "classification"
    encoders = {}
    for name, objective in objectives.items():
        begin(name)
        with warnings.catch_warnings():
            # It would say that a state is kept, and an interrupted demo keeps none.
            warnings.filterwarnings("ignore", "Training was interrupted", TrainingWarning)
            encoder = PrefixEncoder(WIDTH, objective=objective, random_state=0, verbose=False)
            encoders[name] = encoder.fit(parts.fitted.X, parts.fitted.y)
    return encoders


def torch_is_installed() -> bool:
    """Return whether the trained code can be fitted."""
    return importlib.util.find_spec("torch") is not None


def evaluated(parts: Parts, encoders: Mapping[str, FittedEncoder]) -> Evaluation:
    """Score prefixes of ours, of the trained code and of three baselines on the test questions."""
    from firstk.advice.baselines import baselines_of
    from firstk.advice.evaluate import evaluate

    all_baselines = baselines_of(parts.fitted.X)
    others = {name: encoder for name, encoder in encoders.items() if name != OURS}
    others |= {name: all_baselines[name][:WIDTH] for name in BASELINES}
    ks, ours = range(1, WIDTH + 1), encoders[OURS]
    found = evaluate(ours, parts.test, metric=METRIC, ks=ks, precisions=["float32"], baselines=others)
    return replace(found, label=OURS)


def chosen(encoder: FittedEncoder, parts: Parts) -> tuple[Offer, float]:
    """Return the cheapest code that surely keeps 99 % on the questions to choose on, and its share on the test."""
    from firstk.advice.evaluate import evaluate

    given = {"metric": METRIC, "baselines": False}
    found = evaluate(encoder, parts.chosen_on, precisions=PRECISIONS, **given)  # type: ignore[arg-type]
    choice = found.choose(keep=KEEP, precision=PRECISIONS)
    offer = choice.get("safe") or choice.own
    assert offer is not None
    point = offer.point
    again = evaluate(encoder, parts.test, ks=[point.k], precisions=[point.precision], **given)  # type: ignore[arg-type]
    assert again.input_score is not None
    return offer, again.own[0].score / again.input_score


def neighbors(parts: Parts, encoder: FittedEncoder) -> TextNeighbors:
    """Return what a few test questions find: by all numbers, by the first k of them, and by the first k of ours."""
    import numpy as np

    from firstk.advice.baselines import plain_truncation
    from firstk.advice.text_neighbors import neighbors_of_texts

    bank, names = parts.bank, parts.bank.class_names
    asked = np.random.default_rng(SEED).choice(len(bank.X_test), QUESTIONS, replace=False)
    return neighbors_of_texts(
        {TRUNCATION: plain_truncation(bank.X_train)[:WIDTH], OURS: encoder},
        bank.X_test[asked],
        bank.X_train,
        texts=[bank.texts_test[i] for i in asked],
        stored_texts=bank.texts_train,
        labels=[names[i] for i in bank.y_test[asked]],
        stored_labels=[names[i] for i in bank.y_train],
        n_neighbors=NEAREST,
    )


def page_of(parts: Parts, found: Evaluation, choice: Offer, kept: float, sentences: TextNeighbors, model: Path) -> Page:
    """Return the page: curves, sentences and bytes behind one slider."""
    from firstk import __version__
    from firstk.advice.report import Page, Section, curve_section, storage_section
    from firstk.words.text import bytes_text

    point, (n_fitted, n_chosen, n_test) = choice.point, parts.counts
    before = 4 * parts.bank.X_train.shape[1]
    ours, raw = found.curve(), found.input_score or 0.0
    best = max(found.baselines, key=lambda curve: curve.at(point.k) if curve.label in BASELINES else -1.0)
    return Page(
        title=f"Questions to a bank: {point.bytes} bytes per vector instead of {before:,}",
        summary=(
            f"All {parts.bank.X_train.shape[1]} numbers of a sentence embedding find a question of the same intent for "
            f"{100 * raw:.1f}\u00a0% of {n_test:,} test questions. The first {point.k} coordinates of a code that "
            f"firstk learned find one for {100 * ours.at(point.k):.1f}\u00a0%. Move the slider to cut shorter."
        ),
        sections=(
            curve_section(
                "Is the nearest question of the same intent?",
                "Share of test questions whose nearest training question, by cosine of the first k numbers, has the "
                "same of 77 intents.",
                (ours, *(curve for curve in found.baselines if curve.label == TRAINED)),
                tuple(curve for curve in found.baselines if curve.label in BASELINES),
            ),
            Section(
                "Which questions are found?",
                f"The nearest training questions to {QUESTIONS} test questions that were drawn at random. Those of "
                "another intent are struck out.",
                (sentences,),
            ),
            storage_section(
                "What is saved?",
                "",
                rows=ROWS,
                columns=parts.bank.X_train.shape[1],
                itemsize=4,
                ks=ours.k,
                precisions=PRECISIONS,
            ),
        ),
        chosen_k=point.k,
        figures=(
            (f"{point.bytes}", f"bytes per vector instead of {before:,}: {point}"),
            (f"{100 * kept:.1f} %", f"of the accuracy of all {parts.bank.X_train.shape[1]} numbers, on test questions"),
            (
                f"{100 * best.at(point.k) / raw:.1f} %",
                f"by the best baseline at k = {point.k}, {best.label}, not rounded",
            ),
            (bytes_text(ROWS * (before - point.bytes)), f"saved on {ROWS:,} vectors"),
        ),
        facts=(
            ("questions learned from", n_fitted),
            ("questions chosen on", n_chosen),
            ("test questions", n_test),
            ("numbers of a raw vector", parts.bank.X_train.shape[1]),
            ("encoder saved in", f"{model.parent.name}/{model.name}"),
            ("firstk", __version__),
        ),
        notes=(
            "Every score is that of test questions. What to store was chosen on questions of the training part that "
            "the encoder has not learned from.",
            "The questions are a part of Banking77 (Casanueva et al. 2020, CC BY 4.0), embedded by all-MiniLM-L6-v2.",
        ),
    )


# -- what is printed -------------------------------------------------------------------------------------------


def _print_scores(parts: Parts, found: Evaluation, *, trained: bool) -> None:
    n_fitted, n_chosen, n_test = parts.counts
    typer.echo(
        f"{n_fitted + n_chosen + n_test:,} questions to a bank, 77 intents, sentence embeddings of "
        f"{parts.bank.X_train.shape[1]} numbers (all-MiniLM-L6-v2).\n"
    )
    typer.echo(f"Is the nearest question of the same intent?  ({METRIC} of {n_test:,} test questions)")
    typer.echo(f"  {'first k numbers of':<24}" + "".join(f"{f'k = {k}':>9}" for k in SHOWN))
    order = {TRUNCATION: 0, "random dimensions": 1, "PCA": 2, OURS: 3, TRAINED: 4}
    for curve in sorted((found.curve(), *found.baselines), key=lambda one: order[one.label]):
        typer.echo(f"  {curve.label:<24}" + "".join(f"{curve.at(k):9.3f}" for k in SHOWN))
    typer.echo(f"  {'all 384 numbers':<24}{found.input_score:9.3f}")
    if not trained:
        typer.echo(
            '  With torch (pip install "firstk[torch]") the table gets a trained code, objective classification: on\n'
            f"  all 10,003 questions of Banking77 {ON_ALL_QUESTIONS['classification']}, against "
            f"{ON_ALL_QUESTIONS['error_bound']}\n  of error_bound, which needs no torch (docs/benchmarks.md)."
        )


def _print_choice(parts: Parts, choice: Offer, kept: float) -> None:
    from firstk.words.text import bytes_text

    point, width = choice.point, parts.bank.X_train.shape[1]
    before = 4 * width
    typer.echo(f"\nWhat to store: {point}, {point.bytes} bytes per vector instead of {before:,}.")
    typer.echo(
        f"It is the cheapest code that keeps {100 * KEEP:g} % of the accuracy of all {width} numbers with its whole "
        f"interval,\nchosen on {parts.counts[1]} other questions. On the test questions it keeps {100 * kept:.1f} %."
    )
    typer.echo(f"{ROWS:,} vectors: {bytes_text(ROWS * point.bytes)} instead of {bytes_text(ROWS * before)}.")


def _print_sentences(sentences: TextNeighbors) -> None:
    k = SENTENCES_AT
    typer.echo(f"\nThe nearest question to {PRINTED} test questions, drawn at random (x: of another intent)")
    for i, (text, label) in enumerate(zip(sentences.texts[:PRINTED], sentences.labels, strict=False)):
        typer.echo(f'\n  "{text}"  ({label})')
        rows = {
            "all 384 numbers": sentences.of_raw(i)[0],
            f"truncation, k = {k}": sentences.at(TRUNCATION, k, i)[0],
            f"firstk, k = {k}": sentences.at(OURS, k, i)[0],
        }
        for name, row in rows.items():
            mark = " " if sentences.stored_labels[row] == label else "x"
            typer.echo(f"    {name:<19}{mark} {sentences.stored_texts[row]}")
