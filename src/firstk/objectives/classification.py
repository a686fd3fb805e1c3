"""Classification: the code on which one shared linear head tells classes apart at every length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstk._checks import check_fraction
from firstk.contracts import Form, Head, NormativeLine, Pencil, Statistics, Takes
from firstk.objectives._common import SHRINKAGES, ClosedFormObjective, check_shrinkage, rows_of
from firstk.objectives.fisher import Fisher


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
    """

    shrinkage: float | str | None = "auto"
    label_smoothing: float = 0.0

    name: ClassVar[str] = "classification"
    takes: ClassVar[Takes] = "labels"
    form: ClassVar[Form] = "cross_entropy"
    line: ClassVar[NormativeLine] = NormativeLine("learned", "mean", False, "harmonic", "head_accuracy")

    @property
    def exact(self) -> bool:
        """The pencil is where training starts."""
        return False

    def check(self) -> None:
        """Refuse settings outside [0, 1]."""
        check_shrinkage(self.shrinkage, "Classification")
        check_fraction(self.label_smoothing, "label_smoothing", "Classification")

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
