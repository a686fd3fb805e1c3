"""What an estimator reads out of codes: vectors, labels, targets and probabilities, where its objective has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.metaestimators import available_if

from firstk import objectives
from firstk.encoder.fitted import FittedEncoder


def _has(part: str) -> Any:
    """Make a method exist only where the objective gives it a meaning."""

    def check(self: Any) -> bool:
        if not self.__sklearn_is_fitted__():
            return objectives.provides(self.objective, part)
        if getattr(self.encoder_, part) is None:
            objective = self.encoder_.config["objective"]
            raise AttributeError(f"Objective '{objective}' has no {part}, so this has no meaning for it.")
        return True

    return available_if(check)


def _has_probabilities(self: Any) -> bool:
    """Tell whether scores of the head are log-probabilities of classes, up to a constant."""
    if not self.__sklearn_is_fitted__():
        return objectives.gives_probabilities(self.objective)
    objective = self.encoder_.config["objective"]
    if self.encoder_.head is None or not objectives.gives_probabilities(self.objective_):
        raise AttributeError(f"Objective '{objective}' gives no probabilities, so this has no meaning for it.")
    return True


class Readouts:
    """Readouts of whatever has an `encoder_` and checks its input."""

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder."""
        raise NotImplementedError

    def _checked_input(self, X: Any, *, reset: bool = False) -> Any:
        raise NotImplementedError

    @property
    def classes_(self) -> np.ndarray:
        """Labels that ``predict`` chooses among, sorted, where the objective learns labels."""
        head = self.encoder_.head
        if head is None or head.classes is None:
            objective = self.encoder_.config["objective"]
            raise AttributeError(f"classes_ are the labels of a classifier; objective '{objective}' learned none here.")
        return head.classes

    @_has("decoder")
    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Rebuild vectors from codes of any prefix length; where the objective has a decoder."""
        return self.encoder_.decode(Z, owner="PrefixEncoder.inverse_transform")

    @_has("head")
    def predict(self, X: Any, k: int | None = None) -> np.ndarray:
        """Predict labels or targets from the first k coordinates by the objective's own head."""
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.predict")
        head = self.encoder_.head
        assert head is not None
        if head.classes is not None:
            return head.classes[scores.argmax(axis=1)]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, k: int | None = None) -> np.ndarray:
        """Predict the probability of each class from the first k coordinates, (n, C); columns are in order of classes_.

        For "classification", softmax of the logits; for "fisher", the posterior of the Gaussian discriminant rule
        behind ``predict``, with the shares of the training rows as priors. Other objectives have none.
        """
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.predict_proba")
        return softmax(scores.astype(np.float64), axis=1)
