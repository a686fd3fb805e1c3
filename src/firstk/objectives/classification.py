"""Classification: the code on which one shared linear head tells classes apart at every length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int
from firstk.contracts import Conventions, Pencil, Supervision, TrainingLossName
from firstk.encoder.fitted import Head
from firstk.moments.statistics import Statistics
from firstk.objectives._common import (
    ShrinkageObjective,
    check_spread_classes,
    rows_of,
)
from firstk.objectives.fisher import Fisher

# Up to which length a head of its own pays (docs/decisions.md, "Heads of their own"), and logits a row they may take.
_OWN_HEADS = 16
_OWN_LOGITS = 16384
SCALES = ("noise", "head", "learned")


@dataclass(frozen=True)
class Classification(ShrinkageObjective):
    """Least cross-entropy of a linear head over the prefixes, with heads of their own for short ones.

    Longer prefixes share one head, ``b + sum_{j<=k} z_j w_j`` (Talukder et al. 2026 (32)). There is no closed form,
    and the best codes
    of different widths need not nest: omega chooses the compromise. Training starts from the discriminants of Fisher,
    the nearest pencil, and from its head.

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        Of Sw, for the start and for the metric in which training runs. "auto" chooses by cross-validated accuracy
        of Fisher's own head.
    label_smoothing : float in [0, 1]
        As in `torch.nn.CrossEntropyLoss`.
    scale : {"auto", "noise", "head", "learned"}
        Scaling an axis and its column of the head the other way changes no prefix loss, but it changes cosines.
        "noise": every axis has the same noise inside classes, as Fisher's have, and up to `own_heads` it is
        uncorrelated with that of the axes before. "head": columns of the head have one length. "learned": as training
        left it. "auto": "noise" for linear encoders, "learned" for networks, whose output may be normalized. One factor
        then brings the mean squared norm of the code to 1.
    own_heads : int or "auto"
        Prefixes up to this length have a head of their own. One head for all makes short codes pay for long ones: a
        column that is best beside 127 others is not best alone. 0: one head for all, as in Talukder et al. 2026.
        "auto": 16, less where classes are so many that it would cost more than the rest.
    """

    shrinkage: float | str | None = "auto"
    label_smoothing: float = 0.0
    scale: str = "auto"
    own_heads: int | str = "auto"

    name: ClassVar[str] = "classification"
    supervision: ClassVar[Supervision] = "labels"
    probabilities: ClassVar[bool] = True
    training_loss: ClassVar[TrainingLossName] = "cross_entropy"
    conventions: ClassVar[Conventions] = Conventions("noise", "mean", False, "harmonic", "head_accuracy")

    @property
    def exact(self) -> bool:
        """The pencil is where training starts."""
        return False

    @property
    def scale_free(self) -> bool:
        """Logits have a scale."""
        return False

    @property
    def loss_settings(self) -> dict[str, float]:
        """Return the label smoothing."""
        return {"label_smoothing": self.label_smoothing}

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        super().check()
        check_fraction(self.label_smoothing, "label_smoothing", "Classification")
        if self.own_heads != "auto" and not (is_int(self.own_heads) and self.own_heads >= 0):
            raise bad_parameter("own_heads", "Classification", "an int that is not negative, or 'auto'", self.own_heads)
        check_choice(self.scale, ("auto", *SCALES), "scale", "Classification")

    def scale_of(self, linear: bool) -> str:
        """Return what `scale` stands for."""
        return ("noise" if linear else "learned") if self.scale == "auto" else self.scale

    def own_heads_of(self, most: int, classes: int) -> int:
        """Return up to which length prefixes have heads of their own, where `most` could."""
        wanted = min(_OWN_HEADS, _OWN_LOGITS // classes) if self.own_heads == "auto" else int(self.own_heads)
        return min(wanted, most)

    def check_data(self, statistics: Statistics) -> None:
        """Raise an error for less than two classes, and for classes without spread."""
        check_spread_classes(rows_of(statistics), "Classification")

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return Fisher's pencil."""
        self.check_data(statistics)
        return Fisher(self.shrinkage).pencil(statistics)

    def head(self, statistics: Statistics, components: np.ndarray) -> Head:
        """Return Fisher's head: where training starts."""
        return Fisher(self.shrinkage).head(statistics, components)

    def readouts(self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray) -> tuple[None, Head]:
        """All of it is head; columns and bias are centred over classes, which no softmax notices."""
        weight, offset = shared - shared.mean(axis=0), bias - bias.mean()
        return None, Head(weight, offset, np.zeros_like(weight), rows_of(statistics).classes)
