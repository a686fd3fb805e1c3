"""The measure on prefix lengths: how much each prefix counts in a weighted loss.

Strings and mappings stop here: everything below works with `PrefixWeights`, two float64 arrays. Nothing
here imports torch, so that closed forms and training loops read the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, is_int, is_real
from firstk.exceptions import InvalidInputError

OmegaLike: TypeAlias = "str | Mapping[int, float] | Sequence[float] | np.ndarray | PrefixWeights"

NAMES = ("harmonic", "reverse_harmonic", "uniform")
# Length up to which separate heads improve accuracy (docs/decisions/solvers.md, "Separate heads"), and the most
# of logits per row that they may use.
_OWN_HEADS = 16
_OWN_LOGITS = 16384
# Share of the weight of prefixes that are too short which the first that is not gets.
GATHERED = 0.25
# Weights of pairs by default (docs/decisions/losses.md, "Weights of prefixes in a fine-tune"): share of the full
# width, its four halvings, and where harmonic weights, the rest, start: a sixteenth of the width, 12 at most.
_HALVINGS, _LATEST_START = 0.7, 12


@dataclass(frozen=True, eq=False)
class PrefixWeights:
    """Weights of the prefixes 1..d, divided by their sum.

    Attributes
    ----------
    omega : ndarray of shape (d,), float64
        `omega[k - 1]` is the weight of prefix k; the sum is 1.
    cum : ndarray of shape (d,), float64
        `cum[k - 1]` is the sum of omega from k to d: the weight with which coordinate k enters.

    Examples
    --------
    >>> resolve_omega("uniform", 4).cum.tolist()
    [1.0, 0.75, 0.5, 0.25]
    """

    omega: np.ndarray
    cum: np.ndarray

    @property
    def d(self) -> int:
        """The number of prefixes."""
        return len(self.omega)

    @cached_property
    def support(self) -> np.ndarray:
        """The prefix lengths with positive weight, ascending."""
        return np.flatnonzero(self.omega) + 1

    @cached_property
    def edges(self) -> np.ndarray:
        """Where the unit interval is cut into parts as long as the weights of the support, ascending."""
        # Over the support only: rounding of the last edge can then never reach a prefix of weight zero.
        return self.omega[self.support - 1].cumsum()[:-1]

    def described(self) -> str | dict[str, float]:
        """Return a name, where these are the weights of a name, else {k: weight}, as JSON has it.

        Examples
        --------
        >>> resolve_omega([6, 3, 2], 3).described(), resolve_omega({1: 1, 4: 3}, 4).described()
        ('harmonic', {'1': 0.25, '4': 0.75})
        """
        for name in NAMES:
            if np.allclose(self.omega, _named(name, self.d).omega, rtol=1e-12, atol=0):
                return name
        return {str(k): float(self.omega[k - 1]) for k in self.support.tolist()}

    @lru_cache(maxsize=64)  # noqa: B019 - the same weights at every step, of few objects
    def without_first(self) -> PrefixWeights:
        """Take the weight from prefix 1, where a cosine is +1 or -1 (docs/theory.md, 4.5).

        A code of one coordinate has no other prefix and keeps its weight: the loss is then a constant.
        """
        if self.d == 1 or self.omega[0] == 0:
            return self
        rest = self.omega.copy()
        rest[0] = 0.0
        if not rest.any():
            raise InvalidInputError(
                "A cosine loss gives prefix 1 no weight, because a cosine of one coordinate is +1 or -1, and "
                "omega weighs nothing else. Got weight 0 on all prefixes from 2 on; add a longer prefix."
            )
        return _normalized(rest)


def own_heads_for(classes: int) -> int:
    """Return up to which length prefixes have separate heads by default, for so many classes.

    Examples
    --------
    >>> own_heads_for(77), own_heads_for(4096)
    (16, 4)
    """
    return min(_OWN_HEADS, _OWN_LOGITS // classes)


def start_for(classes: int) -> int:
    """Return the shortest prefix worth its weight for so many classes: half of log2 C coordinates, rounded up.

    Shorter codes confuse most classes whatever is learned, and their losses, which are the largest, take what longer
    prefixes could use (figures in docs/decisions/solvers.md, "Own training loops").

    Examples
    --------
    >>> [start_for(classes) for classes in (2, 10, 77, 150, 1000)]
    [1, 2, 4, 4, 5]
    """
    return max(1, math.ceil(math.log2(max(classes, 1)) / 2))


@lru_cache(maxsize=64)
def for_pairs(d: int, start: int | None = None) -> PrefixWeights:
    """Return the default weights of a loss of pairs: the full width and its halvings, and all prefixes from `start` on.

    Halvings down to a sixteenth of the width, as a list of lengths would have them, share 70 %, of which the full width
    has two parts. Harmonic weights have the rest. Prefixes too short to find anything have none: their losses are the
    largest, and every other length would pay.

    Examples
    --------
    >>> weights = for_pairs(256)
    >>> int(weights.support[0]), [k for k in range(1, 257) if weights.omega[k - 1] > 0.1]
    (12, [16, 32, 64, 128, 256])
    """
    start = min(_LATEST_START, -(-d // 16)) if start is None else max(min(start, d), 1)
    listed = np.zeros(d)
    listed[[k - 1 for k in (d >> i for i in range(5)) if k >= start]] = 1.0
    listed[-1] = 2.0
    return _normalized(_HALVINGS * _normalized(listed).omega + (1 - _HALVINGS) * _named("harmonic", d, start).omega)


@lru_cache(maxsize=64)
def gathered(weights: PrefixWeights, start: int) -> PrefixWeights:
    """Return weights from `start` on, which itself gets a quarter of those of shorter prefixes as well.

    Without, the shortest prefix that is of use has less weight than a list of lengths would give it; with all of their
    weights, longer prefixes lose (docs/decisions/solvers.md, "Own training loops"). A code of fewer coordinates
    keeps its longest prefix.

    Examples
    --------
    >>> gathered(resolve_omega("harmonic", 4), 3).omega.round(3).tolist()
    [0.0, 0.0, 0.739, 0.261]
    """
    start = min(start, weights.d)
    omega = np.where(np.arange(1, weights.d + 1) < start, 0.0, weights.omega)
    omega[start - 1] += GATHERED * weights.omega[: start - 1].sum()
    return _normalized(omega)


@lru_cache(maxsize=64)
def beyond(weights: PrefixWeights, K: int) -> tuple[float, PrefixWeights]:
    """Return the weight of all prefixes past K together, which must have some, and how it is shared among them.

    Examples
    --------
    >>> share, rest = beyond(resolve_omega("uniform", 4), 2)
    >>> share, rest.omega.tolist()
    (0.5, [0.0, 0.0, 0.5, 0.5])
    """
    rest = np.where(np.arange(weights.d) < K, 0.0, weights.omega)
    return float(rest.sum()), _normalized(rest)


def resolve_omega(omega: OmegaLike, d: int, owner: str = "resolve_omega", start: int = 1) -> PrefixWeights:
    """Turn every accepted form of omega into weights that sum to 1.

    Parameters
    ----------
    omega : str, mapping, array-like of shape (d,) or PrefixWeights
        "uniform" (1), "harmonic" (1/k), "reverse_harmonic" (1/(d-k+1), also in Talukder et al. 2026), one weight per
        prefix, or {k: weight} for a sparse set of prefixes.
    d : int
        Width of the code.
    owner : str
        What an error calls the caller.
    start : int
        Shortest prefix that weights given by name count; shorter ones have weight zero. A code of fewer coordinates
        keeps its longest prefix. Weights and mappings name their own prefixes, so they are taken as they are.

    Examples
    --------
    >>> resolve_omega("harmonic", 3).omega.round(3).tolist()
    [0.545, 0.273, 0.182]
    >>> resolve_omega("harmonic", 4, start=3).omega.round(3).tolist()
    [0.0, 0.0, 0.571, 0.429]
    >>> resolve_omega({2: 1, 4: 3}, 4).omega.tolist()
    [0.0, 0.25, 0.0, 0.75]
    """
    if not is_int(d) or d < 1:
        raise bad_parameter("d", owner, "an int of at least 1 (the width of the code)", d)
    if isinstance(omega, PrefixWeights):
        if omega.d != d:
            raise bad_parameter("omega", owner, f"made for width {d}", f"weights for width {omega.d}")
        return omega
    if isinstance(omega, str):
        if omega not in NAMES:
            allowed = ", ".join(map(repr, NAMES)) + f", {d} weights, or a mapping {{k: weight}}"
            raise bad_parameter("omega", owner, "one of " + allowed, omega)
        return _named(omega, int(d), min(int(start), int(d)))
    if isinstance(omega, Mapping):
        weights = np.zeros(int(d))
        for k, weight in omega.items():
            if not is_int(k) or not 1 <= k <= d:
                raise bad_parameter("omega", owner, f"a mapping from prefix lengths in [1, {d}]", k)
            if not is_real(weight) or weight < 0:
                raise bad_parameter(f"omega[{k}]", owner, "a finite number that is not negative", weight)
            weights[k - 1] = weight
    else:
        weights = _from_array(omega, int(d), owner)
    if not weights.any():
        raise InvalidInputError(f"The 'omega' of {owner} weighs no prefix. Give at least one k a positive weight.")
    return _normalized(weights)


@lru_cache(maxsize=256)
def _named(name: str, d: int, start: int = 1) -> PrefixWeights:
    k = np.arange(1, d + 1, dtype=np.float64)
    weights = {"uniform": np.ones(d), "harmonic": 1 / k, "reverse_harmonic": 1 / (d - k + 1)}[name]
    return _normalized(np.where(k < start, 0.0, weights))


def _from_array(omega: ArrayLike, d: int, owner: str) -> np.ndarray:
    try:
        weights = np.array(omega, dtype=np.float64)
    except (TypeError, ValueError):
        raise bad_parameter("omega", owner, f"a name, {d} numbers or a mapping", omega) from None
    if weights.shape != (d,):
        allowed = f"one weight for each of the {d} prefixes, or {{k: weight}} for some of them"
        raise bad_parameter("omega", owner, allowed + _as_lengths(weights, d), f"shape {weights.shape}")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        k = int(bad[0]) + 1
        raise bad_parameter(f"omega[{k}]", owner, "a finite number that is not negative", float(weights[k - 1]))
    return weights


def _as_lengths(weights: np.ndarray, d: int) -> str:
    """Return how a list of prefix lengths, as other libraries take it, is said here; nothing for other numbers."""
    if weights.ndim != 1 or not len(weights) or not np.all((weights == np.round(weights)) & (weights >= 1)):
        return ""
    listed = ", ".join(f"{int(k)}: 1" for k in weights[:6] if k <= d)
    return f" (prefix lengths: {{{listed}{', ...' if len(weights) > 6 else ''}}})" if listed else ""


def _normalized(weights: np.ndarray) -> PrefixWeights:
    # Dividing by the largest first keeps the sum finite for weights near the end of the float range.
    omega = weights / weights.max()
    omega = omega / omega.sum()
    cum = np.cumsum(omega[::-1])[::-1].copy()
    for array in (omega, cum):
        array.flags.writeable = False  # cached and shared
    return PrefixWeights(omega, cum)


class TupleSettings:
    """Settings of a frozen dataclass with sequences and weights as tuples, whatever was given.

    Equal settings then make equal objects, also after saving and loading.
    """

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            value = value.omega if isinstance(value, PrefixWeights) else value
            if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
                object.__setattr__(self, name, tuple(value if isinstance(value, list) else value.tolist()))
