"""The diagnosis as one record: what was found, in sentences first and numbers after, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._checks import FirstkError, InvalidInput, bad_parameter, is_int
from firstk.diagnosis._plain import from_plain, to_plain
from firstk.diagnosis.alignment import FORMS, aligned
from firstk.diagnosis.axes import Axes, principal_axes
from firstk.diagnosis.gathering import Gathered, Kind, gather
from firstk.diagnosis.label_noise import LabelNoise, look_for_noise
from firstk.diagnosis.noise import Denoising, effect_of, settings
from firstk.diagnosis.subspaces import Subspaces, compare_ends
from firstk.diagnosis.suitability import Suitability, compare_objectives
from firstk.diagnosis.vectors import Vectors, describe, ranks_of, surely_full
from firstk.records import PrefixCurve

FORMAT = "firstk.Diagnosis/1"
# Held-out rows below this say nothing.
FEWEST_HELD = 20
# Masking is solved in full width.
WIDEST_MASKED = 8192
SHOWN_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Alignment:
    """alignment(k) of 002 in its three forms, and how much of it chance would give.

    Attributes
    ----------
    curves : tuple of PrefixCurve
        Forms "proof", "equation_7" and "code".
    r2 : float
        R^2 in sample of the best linear readout of all coordinates.
    by_chance : float
        What random labels would reach: rank / (n - 1).
    area : float
        Mean of alignment(k), the proof's form, over k = 1 to the rank: 1 when the first axis says all, 0.5 for labels
        spread evenly over the spectrum.
    at_share : dict
        The proof's form at k = 1, 5, 10, 20 and 50 % of the rank.
    """

    curves: tuple[PrefixCurve, ...]
    r2: float
    by_chance: float
    area: float
    at_share: dict[str, float]

    def sentences(self) -> list[str]:
        """Say whether the order by variance serves the task."""
        early, rank = self.at_share["20 %"], self.curves[0].k[-1]
        grade = "well" if early >= 0.9 else "partly" if early >= 0.7 else "poorly"
        found = [
            f"Variance order serves this task {grade}: the first 20 % of principal coordinates give {early:.0%} of the "
            f"linear fit that all {rank} give (002, alignment)."
        ]
        if self.by_chance > self.r2 / 2:
            found.append(
                f"Beware: with so few rows random labels would be fitted nearly as well (R^2 {self.by_chance:.2f} of "
                f"{self.r2:.2f}); trust what is held out instead."
            )
        return found

    def table(self) -> list[tuple[str, str]]:
        """Return the numbers as lines of a table."""
        ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) if k <= self.curves[0].k[-1]]
        lines = [("alignment at k", "  ".join(f"{k:>6}" for k in ks))]
        lines += [(f"form {curve.label}", "  ".join(f"{curve.at(k):6.3f}" for k in ks)) for curve in self.curves]
        shares = ", ".join(f"{share}: {value:.3f}" for share, value in self.at_share.items())
        lines.append(("proof's form at shares of the rank", shares))
        return [*lines, ("area, R^2 of all, by chance", f"{self.area:.3f}, {self.r2:.3f}, {self.by_chance:.3f}")]


@dataclass(frozen=True)
class Diagnosis:
    """What the data's own order serves, found by :func:`diagnose`.

    Attributes
    ----------
    vectors : Vectors
    spectrum : PrefixCurve
        Share of the variance that the first k principal axes hold.
    kind : str
        "none", "labels" or "targets".
    classes : int
        How many classes there are, 0 without labels.
    held_out : int
        Rows held out for every score that says so.
    alignment : Alignment or None
    subspaces : Subspaces or None
    suitability : Suitability or None
    denoising : Denoising or None
    label_noise : LabelNoise or None
    left_out : dict
        Parts that could not be computed, each with the reason.
    """

    vectors: Vectors
    spectrum: PrefixCurve | None
    kind: str
    classes: int
    held_out: int
    alignment: Alignment | None
    subspaces: Subspaces | None
    suitability: Suitability | None
    denoising: Denoising | None
    label_noise: LabelNoise | None
    left_out: dict[str, str]

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that were computed, by title, the task first."""
        named = {
            "Alignment of variance with the task": self.alignment,
            "Which objective": self.suitability,
            "Top and bottom of the spectrum": self.subspaces,
            "Denoising": self.denoising,
            "Label noise": self.label_noise,
            "Vectors": self.vectors,
        }
        return {title: part for title, part in named.items() if part is not None}

    def sentences(self) -> list[str]:
        """Return all findings as sentences, the task first."""
        found = [sentence for part in self.parts.values() for sentence in part.sentences()]
        return found + [f"Left out, {name}: {reason}" for name, reason in self.left_out.items()]

    def render(self) -> str:
        """Return plain sentences first, numbers after."""
        lines = [f"- {sentence}" for sentence in self.sentences()]
        for title, part in self.parts.items():
            table = part.table()
            width = max(len(name) for name, _ in table)
            lines += ["", title, *(f"  {name:<{width}}  {value}" for name, value in table)]
        return "\n".join(lines)

    __str__ = render

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, all of which JSON can hold, with the sentences beside the numbers."""
        return {"format": FORMAT, "sentences": self.sentences(), **to_plain(self)}

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal record."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Diagnosis:
        """Read what `to_json` wrote; anything else is refused with a sentence."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"Diagnosis.from_json takes JSON text; this is none ({error}).") from None
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            raise InvalidInput(f"Diagnosis.from_json takes an object of format '{FORMAT}'. This is something else.")
        return from_plain(cls, {name: part for name, part in values.items() if name not in ("format", "sentences")})


def diagnose(
    X: Any, y: Any = None, *, kind: str = "auto", image_shape: Sequence[int] | None = None, progress: Any = None
) -> Diagnosis:
    """Find out what the order of the data by variance serves (002), which objective suits, and what stands out.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,) or (n, q), optional
        Labels or numeric targets.
    kind : {"auto", "labels", "targets"}
        What `y` is. "auto": floating-point numbers are targets, everything else labels.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of flattened images: masking is then tried in patches.
    progress : callable, optional
        Called with the name of each part before it is computed.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> found = diagnose(digits.X, digits.y, image_shape=digits.image_shape)
    >>> found.vectors.rank, len(found.vectors.constant_columns)
    (61, 3)
    """
    settled = _kind(y, kind)
    return diagnose_gathered(gather(X, y, settled), image_shape=image_shape, progress=progress)


def diagnose_gathered(
    gathered: Gathered, *, image_shape: Sequence[int] | None = None, progress: Any = None
) -> Diagnosis:
    """Diagnose what was gathered from a stream; see :func:`diagnose`."""
    shape = _checked_shape(image_shape, len(gathered.sums.mean))
    say: Callable[[str], Any] = progress or (lambda name: None)
    say("spectrum")
    axes = principal_axes(gathered.moments)
    full = gathered.basis is None and surely_full(axes, gathered.moments)
    ranks = (axes.rank, axes.rank) if full else ranks_of(gathered.everything())
    vectors = describe(gathered.sums, axes, gathered.column_variance(), ranks)
    left_out = _unanswerable(gathered, axes)
    parts: dict[str, Any] = {}
    for name, compute in _plan(gathered, axes, shape).items():
        say(name.replace("_", " "))
        try:
            parts[name] = None if name in left_out else compute()
        except FirstkError as error:
            parts[name], left_out[name] = None, str(error)
    return Diagnosis(
        vectors=vectors,
        spectrum=_spectrum(axes),
        kind=gathered.kind,
        classes=0 if gathered.moments.classes is None else len(gathered.moments.classes),
        held_out=len(gathered.X_held),
        left_out=left_out if gathered.kind != "none" else {k: v for k, v in left_out.items() if k == "denoising"},
        **parts,
    )


def _plan(gathered: Gathered, axes: Axes, shape: tuple[int, ...] | None) -> dict[str, Callable[[], Any]]:
    """Return the parts that need more than the spectrum, in the order in which they are computed."""
    return {
        "alignment": lambda: _alignment(axes),
        "subspaces": lambda: compare_ends(axes, gathered),
        "suitability": lambda: compare_objectives(gathered, axes),
        "denoising": lambda: _denoising(gathered, axes, shape),
        "label_noise": lambda: look_for_noise(axes, gathered),
    }


def _unanswerable(gathered: Gathered, axes: Axes) -> dict[str, str]:
    """Return the parts that these rows cannot answer, each with the reason."""
    task = ("alignment", "subspaces", "suitability", "label_noise")
    if axes.rank == 0:
        return dict.fromkeys((*task, "denoising"), "the vectors do not vary.")
    found: dict[str, str] = {}
    if gathered.basis is not None and len(gathered.sums.mean) > WIDEST_MASKED:
        found["denoising"] = f"masking is solved in full width, and that is more than {WIDEST_MASKED} columns."
    if axes.target is None:
        return found | dict.fromkeys(task, "it needs labels or targets.")
    if axes.target.spread <= 0:
        what = "one class" if gathered.kind == "labels" else "one value"
        return found | dict.fromkeys(task, f"all rows have {what}; give at least two.")
    if len(gathered.X_held) < FEWEST_HELD:
        few = f"it needs {FEWEST_HELD} held-out rows, and {len(gathered.X_held)} of {gathered.sums.rows} could be."
        found |= dict.fromkeys(task[1:], few)
    return found


def _alignment(axes: Axes) -> Alignment:
    curves = tuple(aligned(axes, form) for form in FORMS)
    proof = curves[0]
    at_share = {f"{100 * s:g} %": proof.at(max(1, round(s * axes.rank))) for s in SHOWN_SHARES}
    chance = min(1.0, axes.rank / max(axes.n - 1, 1))
    return Alignment(curves, axes.r2, chance, float(np.mean(proof.score)), at_share)


def _denoising(gathered: Gathered, axes: Axes, shape: tuple[int, ...] | None) -> Denoising:
    """Try every noise in the coordinates in which the vectors came."""
    St, full = gathered.moments.St, axes
    if gathered.basis is not None:
        St = gathered.basis @ St @ gathered.basis.T
        full = Axes(gathered.basis @ axes.mean, gathered.basis @ axes.P, axes.spectrum, _lifted(axes, gathered), axes.n)
    held = None
    if axes.target is not None and axes.target.spread > 0 and len(gathered.X_held) >= FEWEST_HELD:
        held = (axes.whitened(gathered.X_held), gathered.y_held)
    spread = float(np.trace(St)) / len(St)
    return Denoising(
        tuple(effect_of(noise, St, full, held, patch=patch) for noise, patch in settings(spread, shape))
    )


def _lifted(axes: Axes, gathered: Gathered) -> Any:
    from dataclasses import replace

    return None if axes.target is None else replace(axes.target, cross=gathered.basis @ axes.target.cross)


def _spectrum(axes: Axes) -> PrefixCurve | None:
    if axes.rank == 0:
        return None
    return PrefixCurve(
        k=tuple(range(1, axes.rank + 1)),
        score=tuple(axes.variance_shares().tolist()),
        metric="share of variance",
        label="variance",
    )


def _kind(y: Any, kind: str) -> Kind:
    if kind not in ("auto", "labels", "targets"):
        raise bad_parameter("kind", "diagnose", "'auto', 'labels' or 'targets'", kind)
    if y is None:
        return "none"
    if kind == "auto":
        return "targets" if np.asarray(y).dtype.kind == "f" or np.ndim(y) == 2 else "labels"
    return "labels" if kind == "labels" else "targets"


def _checked_shape(image_shape: Any, width: int) -> tuple[int, ...] | None:
    if image_shape is None:
        return None
    shape = tuple(image_shape)
    allowed = f"(height, width) or (height, width, channels) whose product is {width}"
    if len(shape) not in (2, 3) or not all(is_int(side) and side > 0 for side in shape) or np.prod(shape) != width:
        raise bad_parameter("image_shape", "diagnose", allowed, image_shape)
    return tuple(int(side) for side in shape)
