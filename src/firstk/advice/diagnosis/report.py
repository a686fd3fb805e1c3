"""The diagnosis as one record: findings first, numbers after, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, check_verbose, is_int
from firstk._base.json_records import from_json, to_plain
from firstk._base.progress import Verbose, steps
from firstk.advice.diagnosis.alignment import Alignment, align
from firstk.advice.diagnosis.axes import Axes, Spectrum, principal_axes, spectrum_of
from firstk.advice.diagnosis.comparison import compare_objectives
from firstk.advice.diagnosis.folds import Trials, row_trials, trials_of
from firstk.advice.diagnosis.gathering import Gathered, HeldOut, gather
from firstk.advice.diagnosis.label_noise import LabelNoise, look_for_noise
from firstk.advice.diagnosis.noise import Denoising, effect_of, settings
from firstk.advice.diagnosis.ranking import Ranking
from firstk.advice.diagnosis.subspaces import Subspaces, compare_ends
from firstk.advice.diagnosis.vectors import SINGLE, Vectors, describe, ranks_of, surely_full
from firstk.data.task import Search
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.quality.curve import PrefixCurve

FORMAT = "firstk.Diagnosis/1"
PARTS = ("alignment", "subspaces", "ranking", "denoising", "label_noise")
# With fewer held-out rows, scores are too noisy.
FEWEST_HELD = 20
# Masking is solved at full width, up to this many columns.
WIDEST_MASKED = 8192
# Rows are compared in single precision, which may overflow or underflow outside this range of variances.
SINGLE_PRECISION = (1e-60, 1e60)


@dataclass(frozen=True)
class Diagnosis:
    """Result of :func:`diagnose`: which tasks the order by variance suits.

    Attributes
    ----------
    vectors : Vectors
    spectrum : PrefixCurve
        Share of the variance explained by the first k principal axes.
    kind : str
        "none", "labels" or "targets".
    classes : int
        Number of classes, 0 without labels.
    held_out : int
        Number of held-out rows, for the scores marked as held out.
    alignment : Alignment or None
    subspaces : Subspaces or None
    ranking : Ranking or None
        Objectives in the order of their held-out scores, and the one to fit.
    denoising : Denoising or None
    label_noise : LabelNoise or None
    left_out : dict
        Parts that could not be computed, each with the reason.
    command : str
        What to run next: a call in Python, or a command where the diagnosis came from the command line. Empty without
        a ranking.
    rows_in_file : int
        How many rows there are, where only a sample of a file was read; otherwise 0.
    """

    vectors: Vectors
    spectrum: PrefixCurve | None
    kind: str
    classes: int
    held_out: int
    alignment: Alignment | None
    subspaces: Subspaces | None
    ranking: Ranking | None
    denoising: Denoising | None
    label_noise: LabelNoise | None
    left_out: dict[str, str]
    command: str = ""
    rows_in_file: int = 0

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that were computed, by title, the task first."""
        named = {
            "Which objective": self.ranking,
            "Alignment of variance with the task": self.alignment,
            "Top and bottom of the spectrum": self.subspaces,
            "Vectors": self.vectors,
            "Label noise": self.label_noise,
            "Denoising": self.denoising,
        }
        return {title: part for title, part in named.items() if part is not None}

    def sentences(self) -> list[str]:
        """Return all findings, the task first."""
        found = [sentence for part in self.parts.values() for sentence in part.sentences()]
        if self.rows_in_file > self.vectors.rows:
            found.insert(
                0,
                f"{self.vectors.rows:,} of {self.rows_in_file:,} rows were read, at even distances: all numbers are "
                "those of this sample.",
            )
        reasons: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            reasons.setdefault(reason, []).append(name.replace("_", " "))
        return found + [f"Left out ({', '.join(names)}): {reason}" for reason, names in reasons.items()]

    def render(self) -> str:
        """Return what to run next, the findings, and the numbers; the command once more at the end."""
        answer: list[str] = []
        if self.command and self.ranking is not None:
            answer = [self.ranking.why(), f"  {self.command}"]
        lines = [*answer, ""] if answer else []
        lines += [f"- {sentence}" for sentence in self.sentences() if sentence not in answer]
        for title, part in self.parts.items():
            table = part.table()
            width = max(len(name) for name, _ in table)
            lines += ["", title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in table)]
        if answer:
            lines += ["", "Next:", answer[1]]
        return "\n".join(lines)

    __str__ = render

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, with findings and numbers."""
        return {"format": FORMAT, "sentences": self.sentences(), **to_plain(self)}

    def to_json(self) -> str:
        """Return the record as JSON text, from which `from_json` rebuilds it."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Diagnosis:
        """Read what `to_json` wrote; raise InvalidInputError for anything else."""
        return from_json(cls, text, FORMAT, again="diagnose again", ignore=("sentences",))


def diagnose(
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    kind: str = "auto",
    pairs: Sequence[ArrayLike] | None = None,
    search: Search | None = None,
    image_shape: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    progress: Callable[[str], object] | None = None,
    verbose: Verbose = "auto",
) -> Diagnosis:
    """Diagnose which objective fits best, which tasks the order by variance suits, and what is unusual about the data.

    Every objective that the data allow is fitted on a sample and evaluated on held-out rows, pairs or queries at 8, 16,
    32 and 64 coordinates; `Diagnosis.command` is the call to make next. On alignment and denoising: Balestriero and
    LeCun 2024.

    Parameters
    ----------
    X : array-like of shape (n, p), optional
        Vectors. If not given, they are the documents of `search`, or both sides of `pairs`.
    y : array-like of shape (n,) or (n, q), optional
        Labels or numeric targets.
    kind : {"auto", "labels", "targets"}
        Type of `y`. "auto": floating-point numbers are targets, everything else labels.
    pairs : sequence of array-like, optional
        (left, right) or (left, right, scores): vectors of each side, and how alike they are. Objectives are compared by
        the rank correlation with the scores; without scores, by whether the left side finds the right one.
    search : Search, optional
        Objectives are compared by nDCG@10 over all documents. They learn
        from `pairs`, and without those from the judgements of queries that are not held out.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of flattened images: masking is then tried in patches.
    parts : sequence of str, optional
        Parts to compute in addition to the facts about the vectors: "alignment", "subspaces", "ranking", "denoising",
        "label_noise". All if not given.
    progress : callable, optional
        Called with the name of each part, and of each objective, before it is computed.
    verbose : bool or "auto"
        Without `progress`: show these names; "auto": where it takes long, on a terminal or in a notebook.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from firstk import diagnose
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> found = diagnose(digits.X, digits.y, image_shape=digits.image_shape, parts=["alignment"])
    >>> found.vectors.rank, len(found.vectors.constant_columns)
    (61, 3)
    """
    trials = None
    if pairs is not None or search is not None:
        if y is not None:
            raise InvalidInputError("diagnose takes labels or targets (y), or pairs and judgements, not both.")
        X, trials = trials_of(X, pairs, search)
    if X is None:
        raise InvalidInputError("diagnose needs vectors: pass X, or pairs, or search with documents.")
    gathered = gather(X, y, kind)
    with steps("diagnosing", check_verbose(verbose, "diagnose") if progress is None else False) as begin:
        say = progress or begin
        return diagnose_gathered(gathered, trials, image_shape=image_shape, parts=parts, progress=say)


def diagnose_gathered(
    gathered: Gathered,
    trials: Trials | None = None,
    *,
    image_shape: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Diagnosis:
    """Diagnose data gathered from a stream; see :func:`diagnose`.

    `trials` are pairs or judgements to compare objectives on; without them, the gathered rows are.
    """
    shape = checked_shape(image_shape, len(gathered.sums.mean))
    wanted = PARTS if parts is None else tuple(check_choice(part, PARTS, "parts", "diagnose") for part in parts)
    say: Callable[[str], object] = progress or (lambda name: None)
    say("spectrum")
    axes = principal_axes(gathered.moments)
    everyone: Spectrum = axes
    moments = gathered.everything()
    if len(gathered.X_held):  # facts that need no labels use all rows
        everyone = spectrum_of(moments)
    full = gathered.basis is None and surely_full(everyone, moments)
    ranks = (everyone.rank,) * 3 if full else ranks_of(moments)
    left_out = {name: why for name, why in _unanswerable(gathered, axes).items() if name in wanted}
    found: dict[str, Any] = dict.fromkeys(PARTS)
    for name, compute in _plan(gathered, axes, shape, trials, say).items():
        if name in wanted and name not in left_out:
            say(name.replace("_", " "))
            try:
                found[name] = compute()
            except FirstkError as error:
                left_out[name] = str(error)
    return Diagnosis(
        vectors=describe(gathered.sums, everyone, ranks, min(gathered.moments.input_eps, SINGLE)),
        spectrum=_spectrum(everyone),
        kind=gathered.kind if trials is None else trials.task,
        classes=0 if gathered.moments.classes is None else len(gathered.moments.classes),
        held_out=len(gathered.X_held),
        left_out=left_out,
        command=_call(found["ranking"]),
        **found,
    )


def _call(ranking: Ranking | None) -> str:
    """Return the call that fits what was chosen."""
    return "" if ranking is None or ranking.chosen is None else ranking.chosen.python


def _plan(
    gathered: Gathered,
    axes: Axes,
    shape: tuple[int, ...] | None,
    trials: Trials | None,
    say: Callable[[str], object],
) -> dict[str, Callable[[], Any]]:
    """Return a function for each part, in order; rows are converted to principal coordinates once, on first use."""
    evidence = cache(lambda: gathered.along(axes))
    return {
        "alignment": lambda: align(axes),
        "subspaces": lambda: compare_ends(axes, evidence()),
        "ranking": lambda: compare_objectives(trials or _own_trials(gathered), say),
        "denoising": lambda: _denoising(gathered, axes, evidence, shape),
        "label_noise": lambda: look_for_noise(axes, evidence()),
    }


def _own_trials(gathered: Gathered) -> Trials:
    """Return the gathered rows as folds."""
    y = None if gathered.kind == "none" else gathered.y_sample
    return row_trials(gathered.X_sample, y, gathered.kind)


def _unanswerable(gathered: Gathered, axes: Axes) -> dict[str, str]:
    """Return the parts that cannot be computed for these rows, each with the reason."""
    without_labels = ("ranking", "denoising")
    task = tuple(part for part in PARTS if part not in without_labels)
    if axes.rank == 0:
        differ = bool(np.any(gathered.sums.least < gathered.sums.most))
        why = "vary too little for their precision: scale them up." if differ else "do not vary."
        return dict.fromkeys(PARTS, f"the vectors {why}")
    found: dict[str, str] = {}
    if not SINGLE_PRECISION[0] < axes.spectrum[0] < SINGLE_PRECISION[1]:
        far = "large: scale them down." if axes.spectrum[0] > 1 else "small: scale them up."
        found |= dict.fromkeys(PARTS[1:], f"rows are compared in single precision, for which these are too {far}")
    if len(gathered.sums.mean) > WIDEST_MASKED:
        found["denoising"] = f"masking is solved in full width, and that is more than {WIDEST_MASKED} columns."
    if axes.target is None:
        return found | dict.fromkeys(task, "it needs labels or targets.")
    if axes.target.spread <= 0:
        what = "one class" if gathered.kind == "labels" else "one value"
        return found | dict.fromkeys((*task, "ranking"), f"all rows have {what}; give at least two.")
    if len(gathered.X_held) < FEWEST_HELD:
        few = f"it needs {FEWEST_HELD} held-out rows, and {len(gathered.X_held)} of {gathered.sums.rows} could be."
        found |= dict.fromkeys(task[1:], few)
    return found


def _denoising(
    gathered: Gathered, axes: Axes, evidence: Callable[[], HeldOut], shape: tuple[int, ...] | None
) -> Denoising:
    """Try every noise in the original coordinates of the vectors."""
    St, full = gathered.moments.St, axes
    if gathered.basis is not None:
        St, full = gathered.basis @ St @ gathered.basis.T, axes.from_basis(gathered.basis)
    held = None
    if axes.target is not None and axes.target.spread > 0 and len(gathered.X_held) >= FEWEST_HELD:
        held = (evidence().U, gathered.y_held)
    noises = settings(float(np.trace(St)) / len(St), shape)
    return Denoising(tuple(effect_of(noise, St, full, held, patch=patch) for noise, patch in noises))


def _spectrum(axes: Spectrum) -> PrefixCurve | None:
    if axes.rank == 0:
        return None
    return PrefixCurve(
        k=tuple(range(1, axes.rank + 1)),
        score=tuple(axes.variance_shares().tolist()),
        metric="share of variance",
        label="variance",
    )


def checked_shape(image_shape: Sequence[int] | None, width: int) -> tuple[int, ...] | None:
    """Return the image shape, after checking that its product is the width."""
    if image_shape is None:
        return None
    shape = tuple(image_shape)
    allowed = f"(height, width) or (height, width, channels) whose product is {width}"
    if len(shape) not in (2, 3) or not all(is_int(side) and side > 0 for side in shape) or np.prod(shape) != width:
        raise bad_parameter("image_shape", "diagnose", allowed, image_shape)
    return tuple(int(side) for side in shape)
