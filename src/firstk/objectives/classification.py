"""Classification: the code on which one shared linear head separates the classes at every length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int
from firstk._base.prefix_weights import own_heads_for
from firstk.contracts import Conventions, Pencil, TrainingLoss, TrainingLossName
from firstk.encoder.fitted import Head
from firstk.moments.statistics import Statistics
from firstk.objectives._common import DiscriminantObjective, rows_of
from firstk.objectives.fisher import Fisher

SCALES = ("noise", "head", "learned")


@dataclass(frozen=True)
class Classification(DiscriminantObjective):
    """Minimum cross-entropy of a linear head over the prefixes, with separate heads for short prefixes.

    Longer prefixes share one head, ``b + sum_{j<=k} z_j w_j`` (Talukder et al. 2026 (32)). There is no closed form,
    and the best codes of different widths need not be nested: omega sets the trade-off. Training starts from Fisher's
    discriminants, the closest closed form, and from Fisher's head.

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        Shrinkage of Sw, used for the initial weights and the training metric. "auto" chooses by cross-validated
        accuracy of Fisher's head.
    label_smoothing : float in [0, 1]
        As in `torch.nn.CrossEntropyLoss`.
    scale : {"auto", "noise", "head", "learned"}
        Scaling an axis and its column of the head reciprocally changes no prefix loss, but changes cosines.
        "noise": every axis has the same within-class variance, as in Fisher, and the first `own_heads` axes are
        uncorrelated within classes. "head": the columns of the head have equal length. "learned": as trained.
        "auto": "noise" for linear encoders, "learned" for networks, whose output may be normalized. Finally the code
        is scaled to a mean squared norm of 1.
    own_heads : int or "auto"
        Prefixes up to this length have separate heads. One shared head lowers the accuracy of short codes: a column
        that is best together with 127 others is not best alone. 0: one shared head, as in Talukder et al. 2026.
        "auto": 16, or less if there are so many classes that separate heads would dominate the cost.
    reconstruction : float in [0, 1]
        Share of the objective for the vectors themselves, for codes that are used beyond the classes of the labels:
        the loss of prefix k is (1 - r) CE_k + r H (1 - v_k), with H the entropy of the labels and v_k the share of St
        that the prefix explains in the metric of `Fisher(reconstruction=r)`, from which training starts. Linear
        encoders only.
    """

    shrinkage: float | Literal["auto"] | None = "auto"
    label_smoothing: float = 0.0
    scale: str = "auto"
    own_heads: int | Literal["auto"] = "auto"
    reconstruction: float = 0.0

    name: ClassVar[str] = "classification"
    training_loss: ClassVar[TrainingLossName | type[TrainingLoss]] = "cross_entropy"
    conventions: ClassVar[Conventions] = Conventions("noise", "mean", False, "harmonic", "head_accuracy")

    @property
    def exact(self) -> bool:
        """Whether the axes of the pencil are the optimum: no, they are the initial weights."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether the objective is invariant to the scale of the code: no, as logits have a scale."""
        return False

    @property
    def loss_settings(self) -> dict[str, float]:
        """Return the label smoothing, and the share of the vectors."""
        return {"label_smoothing": self.label_smoothing, "reconstruction": self.reconstruction}

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        super().check()
        check_fraction(self.label_smoothing, "label_smoothing", "Classification")
        check_fraction(self.reconstruction, "reconstruction", "Classification")
        if self.own_heads != "auto" and not (is_int(self.own_heads) and self.own_heads >= 0):
            raise bad_parameter("own_heads", "Classification", "an int that is not negative, or 'auto'", self.own_heads)
        check_choice(self.scale, ("auto", *SCALES), "scale", "Classification")

    def scale_of(self, linear: bool) -> str:
        """Return `scale` with "auto" resolved."""
        return ("noise" if linear else "learned") if self.scale == "auto" else self.scale

    def own_heads_of(self, most: int, classes: int) -> int:
        """Return the length up to which prefixes have separate heads, at most `most`."""
        wanted = own_heads_for(classes) if self.own_heads == "auto" else int(self.own_heads)
        return min(wanted, most)

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return Fisher's pencil, from which training starts, as from Fisher's head."""
        self.check_data(statistics)
        return Fisher(self.shrinkage, reconstruction=self.reconstruction).pencil(statistics)

    def readouts(self, statistics: Statistics, shared: np.ndarray, bias: np.ndarray) -> tuple[None, Head]:
        """Return everything as the head, centered over classes, which leaves the softmax unchanged."""
        weight, offset = shared - shared.mean(axis=0), bias - bias.mean()
        return None, Head(weight, offset, np.zeros_like(weight), rows_of(statistics).classes)
