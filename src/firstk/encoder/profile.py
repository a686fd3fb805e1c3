"""Profile of rows under an encoder: what is kept of the rows of a fit, so that later rows can be compared with them.

It holds no rows: the mean, means and variances of the coordinates, the share of variance that each prefix holds, and
scores of prefixes among so many rows. Scores that look for neighbors depend on the number of rows to look among, so
they are kept for several numbers: a later file has one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from firstk._base.arrays import under, within

# Rows among which scores are taken.
SIZES = (64, 256, 1024)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of prefixes by one metric, among several numbers of rows.

    Attributes
    ----------
    sizes : ndarray of int of shape (L,)
        Rows among which scores were taken.
    k : ndarray of int of shape (K,)
        Prefix lengths.
    score, error : ndarray of shape (L, K)
        Scores, and their standard errors.
    raw : ndarray of shape (L,)
        What the vectors themselves score; 1 where they have no score of their own.
    """

    sizes: np.ndarray
    k: np.ndarray
    score: np.ndarray
    error: np.ndarray
    raw: np.ndarray

    def kept(self, k: int, size: int) -> tuple[float, float]:
        """Return the share of the raw vectors' score that prefix k keeps among `size` rows, and its standard error.

        Between lengths that were scored, the share is interpolated on a scale of log k.
        """
        row = int(np.flatnonzero(self.sizes == size)[0])
        at, raw = np.log2(self.k), self.raw[row]
        share, error = (float(np.interp(np.log2(k), at, part[row])) / raw for part in (self.score, self.error))
        return share, error

    def cut(self, d: int) -> ScoreTable:
        """Return the scores of prefixes up to d; the last of them is d, interpolated where it was not scored."""
        short = self.k < d
        last = [np.array([[np.interp(np.log2(d), np.log2(self.k), row)] for row in part]) for part in self._by_k]
        score, error = (np.hstack([part[:, short], end]) for part, end in zip(self._by_k, last, strict=True))
        return replace(self, k=np.append(self.k[short], d), score=score, error=error)

    @property
    def _by_k(self) -> tuple[np.ndarray, np.ndarray]:
        return self.score, self.error


@dataclass(frozen=True, eq=False)
class RowProfile:
    """What is kept of rows under an encoder.

    Attributes
    ----------
    rows : int
        How many rows were looked at.
    held_out : bool
        Whether the fit had not seen them; of rows that it had, scores are a little too good.
    mean : ndarray of shape (p,)
    total : float
        Sum of the variances of all columns.
    share : ndarray of shape (d,) or None
        Share of `total` in the span of the first k axes; None of a network, whose prefixes span nothing.
    scores : mapping of str to ScoreTable
        By metric.
    """

    rows: int
    held_out: bool
    mean: np.ndarray
    total: float
    share: np.ndarray | None = None
    scores: Mapping[str, ScoreTable] = field(default_factory=dict)

    def cut(self, d: int) -> RowProfile:
        """Return the profile under the first d coordinates."""
        return replace(
            self,
            share=None if self.share is None else self.share[:d],
            scores={name: table.cut(d) for name, table in self.scores.items()},
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the profile as arrays of float64, from which ``from_arrays`` builds the same object."""
        arrays = {
            "facts": np.array([self.rows, self.held_out, self.total], dtype=np.float64),
            "mean": self.mean,
        }
        if self.share is not None:
            arrays["share"] = self.share
        for name, table in self.scores.items():
            arrays |= under(f"scores.{name}", {part: getattr(table, part) for part in _PARTS})
        return {name: np.asarray(part, dtype=np.float64) for name, part in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], d: int, p: int) -> RowProfile:
        """Undo ``to_arrays``; raise ValueError or KeyError for arrays that are no profile of an encoder from p to d."""
        rows, held_out, total = (float(number) for number in arrays["facts"])
        names = {name.removeprefix("scores.").rpartition(".")[0] for name in arrays if name.startswith("scores.")}
        share = arrays.get("share")
        if arrays["mean"].shape != (p,) or (share is not None and share.shape != (d,)):
            raise ValueError(f"arrays {sorted(arrays)} do not fit {d} coordinates of {p} columns")
        if any(part.dtype != np.float64 or not np.isfinite(part).all() for part in arrays.values()):
            raise ValueError("arrays hold NaN, infinity or another type")
        tables = {name: _table(within(arrays, f"scores.{name}"), d) for name in names}
        return cls(int(rows), bool(held_out), arrays["mean"], total, share, tables)


_PARTS = ("sizes", "k", "score", "error", "raw")


def _table(arrays: Mapping[str, np.ndarray], d: int) -> ScoreTable:
    sizes, k = (arrays[name].astype(np.int64) for name in ("sizes", "k"))
    shape = (len(sizes), len(k))
    if arrays["score"].shape != shape or arrays["error"].shape != shape or arrays["raw"].shape != shape[:1]:
        raise ValueError(f"scores of {shape[0]} sizes and {shape[1]} lengths have other shapes")
    if not len(k) or k[0] < 1 or k[-1] > d or (np.diff(k) <= 0).any() or (arrays["raw"] <= 0).any():
        raise ValueError(f"scores of lengths {k.tolist()} of {d} coordinates")
    return ScoreTable(sizes, k, arrays["score"], arrays["error"], arrays["raw"])
