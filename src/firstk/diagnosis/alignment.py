"""Alignment of the order by variance with a task (002 section 3.1): how soon principal coordinates serve it.

The paper has three forms of it that differ; all are here by name, for every k at once, from moments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from firstk._checks import InvalidInput, check_choice
from firstk.diagnosis.axes import Axes, Target, axes_of, principal_axes, target_of
from firstk.moments import Moments
from firstk.records import PrefixCurve

FORMS = ("proof", "equation_7", "code")


def alignment(moments: Moments, form: str = "proof", *, centred: bool = True) -> PrefixCurve:
    r"""alignment(k) of 002 for every k, from moments taken with labels or targets.

    With :math:`v_j` the j-th right singular vector of the data (a unit vector over rows) and Y the targets as
    columns, the forms are cumulative sums over j of

    - "proof": :math:`|Y v_j|^2` over the sum of all of them (proof of corollary 1.2). It is the R^2 of the best linear
      readout of the first k principal coordinates over that of all coordinates.
    - "equation_7": :math:`|Y^\top Y v_j|^2` over the sum of all of them (equation (7)): classes weigh by their size.
      The same as "proof" for balanced one-hot Y.
    - "code": :math:`|Y^\top Y v_j|^2` over :math:`|Y^\top Y|_F^2` (section 5.8). It need not end at 1.

    As :math:`v_j` holds the whitened coordinate :math:`u_j / \sqrt n`, :math:`Y v_j = \sqrt n\, c_j` with :math:`c_j =
    E[y u_j]`, and :math:`|Y^\top Y v_j|^2 = n^2 c_j^\top E[y y^\top] c_j`: nothing of the size of n is built.

    Parameters
    ----------
    moments : Moments
        Taken with labels (one-hot targets) or numeric targets.
    form : {"proof", "equation_7", "code"}
    centred : bool
        About the means, which is to allow readouts an intercept. False is the paper's own: data as they stand.

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
    check_choice(form, FORMS, "form", "alignment")
    if target_of(moments) is None:
        raise InvalidInput("alignment needs moments with labels or targets: Moments().update(X, y).")
    return aligned(principal_axes(moments) if centred else _uncentred(moments), form)


def aligned(axes: Axes, form: str = "proof") -> PrefixCurve:
    """Return alignment(k) along axes that are known."""
    target = axes.target
    assert target is not None
    parts = _parts(axes.gains, target, form)
    whole = float(np.sum(target.second**2)) if form == "code" else float(np.sum(parts))
    if whole <= 0:
        raise InvalidInput(
            "Alignment has no meaning here: the labels or targets do not vary, or no linear readout sees anything of "
            "them. Give at least two classes, or targets that differ."
        )
    return PrefixCurve(
        k=tuple(range(1, axes.rank + 1)),
        score=tuple((np.cumsum(parts) / whole).tolist()),
        metric="alignment",
        label=form,
        details={"form": form, "rows": int(axes.n)},
    )


def _parts(gains: np.ndarray, target: Target, form: str) -> np.ndarray:
    """What each axis brings, over n for the proof's form and over n^2 for the others."""
    if form == "proof":
        return np.sum(gains**2, axis=1)
    return np.einsum("ji,ik,jk->j", gains, target.second, gains)


def _uncentred(moments: Moments) -> Axes:
    """Axes about the origin: second moments instead of scatters, for the rows and for the targets."""
    target: Any = target_of(moments)
    mean, origin = moments.mean, np.zeros(moments.p)
    raw = Target(
        target.cross + np.outer(mean, target.mean),
        target.second + np.outer(target.mean, target.mean),
        np.zeros_like(target.mean),
        target.classes,
    )
    return axes_of(moments.St + np.outer(mean, mean), origin, raw, moments.n, moments.eps)
