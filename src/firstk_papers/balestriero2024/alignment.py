"""Alignment of the order by variance with a task: how much of the linear fit each prefix reaches.

Balestriero and LeCun 2024 section 3.1.

The paper has three different definitions; all are computed here by name, for every k, from moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk import Moments, PrefixCurve
from firstk.exceptions import InvalidInputError
from firstk_papers.balestriero2024.axes import Axes, Target, axes_of, principal_axes, target_of

FORMS = ("proof", "equation_7", "code")
SHOWN_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Alignment:
    """alignment(k) of Balestriero and LeCun 2024 in its three forms, and its expected value for random labels.

    Attributes
    ----------
    curves : tuple of PrefixCurve
        Forms "proof", "equation_7" and "code".
    r2 : float
        In-sample R^2 of the best linear readout of all coordinates.
    by_chance : float
        Expected R^2 of random labels: rank / (n - 1).
    area : float
        Mean of alignment(k), in the form of the proof, over k = 1 to the rank: 1 if the first axis predicts
        everything, 0.5 for labels spread evenly over the spectrum.
    at_share : dict
        The form of the proof at k = 1, 5, 10, 20 and 50 % of the rank.
    corrected : dict
        The same, with the contribution expected by chance subtracted; empty if nothing would be left.
    """

    curves: tuple[PrefixCurve, ...]
    r2: float
    by_chance: float
    area: float
    at_share: dict[str, float]
    corrected: dict[str, float]


def alignment(moments: Moments, form: str = "proof", *, centred: bool = True) -> PrefixCurve:
    r"""Return alignment(k) of Balestriero and LeCun 2024 for every k, from moments with labels or targets.

    With :math:`v_j` the j-th right singular vector of the data (a unit vector over rows) and Y the targets as
    columns, the forms are cumulative sums over j of

    - "proof": :math:`|Y v_j|^2` over the sum of all of them (proof of corollary 1.2). It is the R^2 of the best linear
      readout of the first k principal coordinates over that of all coordinates.
    - "equation_7": :math:`|Y^\top Y v_j|^2` over the sum of all of them (equation (7)): classes are weighted by size.
      The same as "proof" for balanced one-hot Y.
    - "code": :math:`|Y^\top Y v_j|^2` over :math:`|Y^\top Y|_F^2` (section 5.8). It need not end at 1.

    As :math:`v_j` holds the whitened coordinate :math:`u_j / \sqrt n`, :math:`Y v_j = \sqrt n\, c_j` with :math:`c_j =
    E[y u_j]`, and :math:`|Y^\top Y v_j|^2 = n^2 c_j^\top E[y y^\top] c_j`: no array of size n is needed.

    Parameters
    ----------
    moments : Moments
        Moments with labels (one-hot targets) or numeric targets.
    form : {"proof", "equation_7", "code"}
    centred : bool
        Subtract the means, which gives readouts an intercept. False uses the data as given, as in the paper.

    Returns
    -------
    PrefixCurve
        For k = 1 to the rank. Random labels give k / rank on average.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[3.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-3.0, -1.0]])
    >>> alignment(Moments().update(X, ["a", "a", "b", "b"])).score
    (0.0, 1.0)
    """
    if form not in FORMS:
        raise InvalidInputError(f"The 'form' parameter of alignment must be one of {', '.join(FORMS)}. Got {form!r}.")
    if target_of(moments) is None:
        raise InvalidInputError("alignment needs moments with labels or targets: Moments().update(X, y).")
    return aligned(principal_axes(moments) if centred else raw_axes(moments), form)


def aligned(axes: Axes, form: str = "proof") -> PrefixCurve:
    """Return alignment(k) along given axes."""
    target = axes.target
    assert target is not None
    parts = _parts(axes.gains, target, form)
    whole = float(np.sum(target.second**2)) if form == "code" else float(np.sum(parts))
    if whole <= 0:
        raise InvalidInputError(
            "Alignment is not defined here: the labels or targets do not vary, or no linear readout predicts them. "
            "Pass at least two classes, or targets that differ."
        )
    return PrefixCurve(
        k=tuple(range(1, axes.rank + 1)),
        score=tuple((np.cumsum(parts) / whole).tolist()),
        metric="alignment",
        label=form,
        details={"form": form, "rows": int(axes.n), "target": "targets" if target.classes is None else "labels"},
    )


def align(axes: Axes) -> Alignment:
    """Return alignment in all forms, with its expected value by chance.

    Noise that is independent of the rows adds the same to every direction: its variance over n. That variance is
    estimated from the residual, (1 - R^2) / (1 - rank / (n - 1)), and the correction subtracts it.
    """
    curves = tuple(aligned(axes, form) for form in FORMS)
    ks = {f"{100 * share:g} %": _length_of(share, axes.rank) for share in SHOWN_SHARES}
    chance, r2 = min(1.0, axes.rank / max(axes.n - 1, 1)), axes.r2
    each = (1 - r2) / (1 - chance) * chance / axes.rank if chance < 1 else 0.0
    left = r2 - each * axes.rank
    clear = chance < 1 and left > 0.01 * r2
    return Alignment(
        curves=curves,
        r2=r2,
        by_chance=chance,
        area=float(np.mean(curves[0].score)),
        at_share={share: curves[0].at(k) for share, k in ks.items()},
        corrected={share: (curves[0].at(k) * r2 - each * k) / left for share, k in ks.items()} if clear else {},
    )


def _length_of(share: float, rank: int) -> int:
    """Return the number of axes that is a share of all, at least one."""
    return max(1, round(share * rank))


def _parts(gains: np.ndarray, target: Target, form: str) -> np.ndarray:
    """Return the contribution of each axis, divided by n for the form of the proof and by n^2 for the others."""
    if form == "proof":
        return np.sum(gains**2, axis=1)
    return np.einsum("ji,ik,jk->j", gains, target.second, gains)


def raw_axes(moments: Moments) -> Axes:
    """Return principal axes about the origin, from second moments instead of scatters of rows and targets."""
    target: Any = target_of(moments)
    mean, origin = moments.mean, np.zeros(moments.p)
    raw = Target(
        target.cross + np.outer(mean, target.mean),
        target.second + np.outer(target.mean, target.mean),
        np.zeros_like(target.mean),
        target.classes,
    )
    return axes_of(moments.St + np.outer(mean, mean), origin, raw, moments.n, moments.eps)
