"""Does an encoder still fit? Rows of today compared with those of the fit, and a verdict by the quality that is lost.

The verdict goes by the size of the effect: how much less of the full vectors' neighbors (and of the objective's score,
with labels or targets) the first k coordinates find than they did at the fit. How far mean and scatter have moved is
reported as well; a drift that costs nothing is no reason to fit again.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh
from scipy.special import ndtri

from firstk._base.checks import bad_parameter, check_prefix, is_real
from firstk._base.rows import Rows, sliceable
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.profile import SIZES, RowProfile, ScoreTable
from firstk.estimator.fit_profile import ENOUGH
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import check_confidence
from firstk.metrics.profile import FEWEST_ROWS, MOST_OTHER_ROWS, RECALL, Scatter, measure_profile
from firstk.moments.fingerprint import row_priorities
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample, sample_capacity
from firstk.quality.paired import CONFIDENCE

# Share of the quality at the fit that may be lost. docs/decisions/estimator.md says how it was set.
TOLERANCE = 0.02
# Where neither -k nor a recommendation names a length: the shortest that keeps this share of the full code's score.
KEEP = 0.95
FINE, UNCLEAR, REFIT = "fine", "unclear", "refit"


@dataclass(frozen=True)
class Kept:
    """What the first k coordinates keep by one metric, then and now.

    Attributes
    ----------
    metric : str
    then, now : float
        Share of the full vectors' score that prefix k keeps.
    low, high : float
        Interval of `now`.
    ratio, ratio_low, ratio_high : float
        now / then and its interval, which has the errors of both in it.
    among : int
        Rows among which both were scored.
    profile_margin : float
        Half of what the interval of the ratio would be with any number of new rows: the error of `then`.
    """

    metric: str
    then: float
    now: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    among: int
    profile_margin: float

    def tells_with_more_rows(self, tolerance: float) -> bool:
        """Whether the interval, but for the error of the profile, lies on one side of what may be lost."""
        return abs(self.ratio - (1 - tolerance)) >= self.profile_margin


@dataclass(frozen=True)
class Drift:
    """How far mean and scatter have moved, in units of the fit.

    Attributes
    ----------
    mean_shift : float
        Distance of the means, over the root of the summed variances at the fit.
    scatter_ratio : float
        Sum of the variances now, over that at the fit.
    """

    mean_shift: float
    scatter_ratio: float


@dataclass(frozen=True)
class CheckReport:
    """Whether an encoder still fits, and by what.

    Attributes
    ----------
    verdict : {"fine", "unclear", "refit"}
        "refit": the whole interval of what is lost lies above `tolerance`. "fine": all of it lies below. "unclear":
        neither; the report says what would tell.
    k : int
    rows, rows_then : int
        Rows of today, and of the profile of the fit.
    kept : tuple of Kept
        By recall@10 against the full vectors, and by the objective's own metric where labels or targets are given.
    share_then, share_now, share_best : float or None
        Share of variance in the first k axes, at the fit and today, and in the k axes that hold most of it today.
    drift : Drift
    tolerance, confidence : float
    notes : tuple of str
    """

    verdict: str
    k: int
    rows: int
    rows_then: int
    kept: tuple[Kept, ...]
    share_then: float | None
    share_now: float | None
    share_best: float | None
    drift: Drift
    tolerance: float
    confidence: float
    notes: tuple[str, ...] = ()

    most: ClassVar[int] = MOST_OTHER_ROWS  # rows that are scored at most

    @property
    def refit(self) -> bool:
        """Whether to fit again."""
        return self.verdict == REFIT

    @property
    def worst(self) -> Kept:
        """The metric that decides the verdict: by the end of its interval that is compared with what may be lost."""
        return min(self.kept, key=lambda one: one.ratio_high if self.refit else one.ratio_low)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return asdict(self) | {"kept": [asdict(one) for one in self.kept], "notes": list(self.notes)}

    @property
    def limited(self) -> tuple[Kept, ...]:
        """Metrics of which no number of new rows could tell, as what was kept at the fit is not known well enough."""
        unclear = [one for one in self.kept if one.ratio_low < 1 - self.tolerance]
        return tuple(one for one in unclear if not one.tells_with_more_rows(self.tolerance))

    def __str__(self) -> str:
        from firstk.words.check import lines

        return "\n".join(lines(self))


class NewRows:
    """Rows of today as they come in: their moments, and a bounded sample.

    Parameters
    ----------
    encoder : FittedEncoder
    owner : str
        What an error message calls the caller.
    """

    def __init__(self, encoder: FittedEncoder, owner: str = "check"):
        self.encoder, self.owner = encoder, owner
        self.moments = Moments(owner=owner)
        self.sample = RowSample(min(8192, sample_capacity(encoder.p)))

    def update(self, X: Rows, y: np.ndarray | None = None) -> NewRows:
        """Take in a batch of rows, with labels or targets or none."""
        X = sliceable(X)
        if X.shape[1] != self.encoder.p:
            raise InvalidInputError(
                f"{self.owner} takes the vectors that the encoder was fitted on: {self.encoder.p} columns. Got "
                f"{X.shape[1]}."
            )
        columns = {"X": X} if y is None else {"X": X, "y": np.asarray(y)}
        if y is not None and columns["y"].shape[:1] != X.shape[:1]:
            raise InvalidInputError(
                f"{self.owner} takes one label or target for each row. Got {np.size(y):,} for {X.shape[0]:,} rows."
            )
        self.moments.update(X)
        # Rows are sampled by hashes of the vectors, so that labels do not change which are scored. Of the same vector
        # with several labels, the last 16 bits tell which comes first, in any order of the rows.
        priorities = row_priorities({"X": X})
        if y is not None:
            last = np.uint64(0xFFFF)
            priorities = (priorities & ~last) | (row_priorities(columns) & last)
        self.sample.update(columns, priorities)
        return self

    def profile(self, sizes: tuple[int, ...] | None = None, k: int | None = None) -> RowProfile:
        """Return the profile of all rows so far, with scores among as many rows as there are of `sizes`; all if None.

        With `k`, prefixes are scored at that length alone.

        Too few rows, and rows that do not vary, raise an error.
        """
        if self.moments.rows < FEWEST_ROWS:
            raise InvalidInputError(
                f"{self.owner} looks for neighbors among the rows and needs at least {FEWEST_ROWS}. Got "
                f"{self.moments.rows}."
            )
        scatter = Scatter(self.moments.rows, self.moments.mean, self.moments.St)
        y = self.sample.columns.get("y")
        among: tuple[int, ...] = SIZES
        if sizes is not None:  # the largest number of rows that there are, and that the other profile has scores for
            fitting = [size for size in sizes if size <= len(self.sample)]
            if not fitting:
                raise InvalidInputError(
                    f"The profile of the fit has scores among {', '.join(map(str, sizes))} rows, and there are "
                    f"{len(self.sample)} rows to check. Check more rows."
                )
            among = (max(fitting),)
        found = measure_profile(
            self.encoder, self.sample["X"], y, scatter=scatter, sizes=among, held_out=True,
            most_rows=MOST_OTHER_ROWS, k=k,
        )  # fmt: skip
        if found is None:
            raise InvalidInputError(f"All {self.moments.rows:,} rows are the same vector: there is nothing to check.")
        return found


def rows_and_labels(given: Any, name: str, owner: str) -> tuple[Any, Any]:
    """Return the two of a tuple (X, y); what is no tuple are rows without labels."""
    if not isinstance(given, tuple):
        return given, None
    if len(given) != 2:
        raise bad_parameter(name, owner, "an array, or a tuple (X, y)", f"a tuple of {len(given)}")
    return given


def check_rows(
    rows: NewRows,
    against: RowProfile | None = None,
    *,
    k: int | None = None,
    tolerance: float = TOLERANCE,
    confidence: float = CONFIDENCE,
) -> CheckReport:
    """Compare rows of today with the profile of the fit.

    Parameters
    ----------
    rows : NewRows
    against : RowProfile, optional
        Of rows of the fit; the encoder's own if not given.
    k : int, optional
        Prefix length that is in use; the recommended one if not given.
    tolerance : float in (0, 1)
        Share of the quality that may be lost before a refit is called for.
    confidence : float in (0, 1)
        Of the intervals.

    Returns
    -------
    report : CheckReport
    """
    encoder = rows.encoder
    if not is_real(tolerance) or not 0 < tolerance < 1:
        raise bad_parameter("tolerance", "check", "a number between 0 and 1, such as 0.02", tolerance)
    confidence = check_confidence(confidence, "check")
    then = encoder.profile if against is None else against
    if then is None:
        raise InvalidInputError(
            "This model holds no profile of the rows of its fit, to which new rows could be compared: it was "
            f"fitted on fewer than {ENOUGH} rows. Give rows of that time: "
            "against=, or fit and save it again."
        )
    if k is None:
        # The length that was recommended; else the shortest that keeps 95 % of the best recall at the fit.
        choice, curve = encoder.record.choice_up_to(encoder.d), encoder.record.curve_up_to(encoder.d)
        if choice is not None and choice.own is not None:
            k = choice.own.point.k
        elif curve is not None:
            k = curve.smallest_lengths().get(KEEP)
        if k is None:
            scores = then.scores[RECALL].score[-1]
            k = int(then.scores[RECALL].k[np.flatnonzero(scores >= KEEP * scores.max())[0]])
    k = check_prefix(k, encoder.d, "check")
    now = rows.profile(tuple(then.scores[RECALL].sizes.tolist()), k)
    kept = tuple(
        found
        for name, table in now.scores.items()
        if name in then.scores and (found := _kept(name, then.scores[name], table, k, confidence)) is not None
    )
    best = None
    if now.share is not None:  # of variance, in as many axes as today's rows would be given
        spectrum = eigvalsh(rows.moments.St)
        best = float(spectrum[-k:].sum() / spectrum.sum())
    notes = []
    if not then.held_out:
        notes.append(
            f"The profile of the fit is of {then.rows:,} of its own rows, on which a code is a little too good."
        )
    if missing := sorted(set(now.scores) - set(then.scores)):
        notes.append(
            f"No score by {', '.join(missing)} was saved with the model, so that labels are left out of the verdict: "
            "save it with held_out=(X, y), or give rows of that time with labels (against)."
        )
    return CheckReport(
        verdict=verdict_of(kept, tolerance),
        k=k,
        rows=now.rows,
        rows_then=then.rows,
        kept=kept,
        share_then=None if then.share is None else float(then.share[k - 1]),
        share_now=None if now.share is None else float(now.share[k - 1]),
        share_best=best,
        drift=Drift(float(np.linalg.norm(now.mean - then.mean) / math.sqrt(then.total)), now.total / then.total),
        tolerance=float(tolerance),
        confidence=confidence,
        notes=tuple(notes),
    )


def _kept(metric: str, then: ScoreTable, now: ScoreTable, k: int, confidence: float) -> Kept | None:
    """Compare what is kept by one metric; None where nothing was kept at the fit, of which a share means nothing."""
    size = int(now.sizes[0])
    if size not in then.sizes:
        return None
    before, after = then.kept(k, size), now.kept(k, size)
    if before[0] <= 0:
        return None
    z = float(ndtri((1 + confidence) / 2))
    ratio = after[0] / before[0]
    # Error of a ratio of two independent numbers, to first order.
    of_profile = ratio * before[1] / before[0]
    error = math.hypot(after[1] / before[0], of_profile)
    return Kept(
        metric,
        before[0],
        after[0],
        after[0] - z * after[1],
        after[0] + z * after[1],
        ratio,
        ratio - z * error,
        ratio + z * error,
        size,
        z * of_profile,
    )


def verdict_of(kept: tuple[Kept, ...], tolerance: float) -> str:
    """Return what the intervals say: "refit" where one lies below what may be lost, "fine" where all lie above."""
    least = 1 - tolerance
    if any(one.ratio_high < least for one in kept):
        return REFIT
    return FINE if all(one.ratio_low >= least for one in kept) else UNCLEAR
