"""Classification: the code on which one shared linear head tells classes apart at every length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstk._checks import check_choice, check_fraction
from firstk.contracts import Form, Head, NormativeLine, Pencil, Statistics, Takes
from firstk.objectives._common import SHRINKAGES, ClosedFormObjective, check_shrinkage, rows_of
from firstk.objectives.fisher import Fisher

SCALES = ("noise", "head", "learned")


@dataclass(frozen=True)
class Classification(ClosedFormObjective):
    """Least cross-entropy of ``b + sum_{j<=k} z_j w_j`` over the prefixes (000 (32)), one head for all of them.

    There is no closed form, and the best codes of different widths need not nest: omega chooses the compromise.
    Training starts from the discriminants of Fisher, the nearest pencil, and from its head.

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        Of Sw, for the start and for the metric in which training runs. "auto" chooses by cross-validated accuracy
        of Fisher's own head.
    label_smoothing : float in [0, 1]
        As in `torch.nn.CrossEntropyLoss`.
    scale : {"auto", "noise", "head", "learned"}
        Scaling an axis and its column of the head the other way changes no prefix loss, but it changes cosines.
        "noise": every axis has the same noise inside classes, as Fisher's have. "head": columns of the head have one
        length. "learned": as training left it. "auto": "noise" for linear encoders, "learned" for networks, whose
        output may be normalised. One factor then brings the mean squared norm of the code to 1.
    """

    shrinkage: float | str | None = "auto"
    label_smoothing: float = 0.0
    scale: str = "auto"

    name: ClassVar[str] = "classification"
    takes: ClassVar[Takes] = "labels"
    form: ClassVar[Form] = "cross_entropy"
    line: ClassVar[NormativeLine] = NormativeLine("noise", "mean", False, "harmonic", "head_accuracy")

    @property
    def exact(self) -> bool:
        """The pencil is where training starts."""
        return False

    def check(self) -> None:
        """Refuse settings outside [0, 1]."""
        check_shrinkage(self.shrinkage, "Classification")
        check_fraction(self.label_smoothing, "label_smoothing", "Classification")
        check_choice(self.scale, ("auto", *SCALES), "scale", "Classification")

    def scale_of(self, linear: bool) -> str:
        """Return what `scale` stands for."""
        return ("noise" if linear else "learned") if self.scale == "auto" else self.scale

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return Fisher's pencil."""
        return Fisher(self.shrinkage).pencil(statistics)

    def head(self, statistics: Statistics, components: np.ndarray) -> Head:
        """Return Fisher's head: where training starts."""
        return Fisher(self.shrinkage).head(statistics, components)

    def readouts(self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray) -> tuple[None, Head]:
        """All of it is head; columns and bias are centred over classes, which no softmax notices."""
        weight, offset = shared - shared.mean(axis=0), bias - bias.mean()
        return None, Head(weight, offset, np.zeros_like(weight), rows_of(statistics).classes)

    def candidates(self) -> tuple[Classification, ...]:
        """Return one candidate a shrinkage when it is "auto"."""
        return tuple(replace(self, shrinkage=a) for a in SHRINKAGES) if self.shrinkage == "auto" else ()
