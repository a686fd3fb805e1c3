"""The diagnosis as one record: which objective to fit, and what is wrong with the vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_verbose
from firstk._base.json_records import JsonRecord, to_plain
from firstk._base.progress import Verbose, steps
from firstk.advice.diagnosis.compare import Ranking, compare_objectives
from firstk.advice.diagnosis.folds import Trials, row_trials, trials_of
from firstk.advice.diagnosis.rows import Gathered, gather, gather_batches
from firstk.advice.diagnosis.vectors import (
    SINGLE,
    Vectors,
    describe,
    ranks_of,
    spectrum_of,
    surely_full,
    variance_shares,
)
from firstk.data.task import Data, Pairs, Rows, Search, Task
from firstk.estimator.fit_files import Stream
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.quality.curve import PrefixCurve

# Rows are compared in single precision, which may overflow or underflow outside this range of variances.
SINGLE_PRECISION = (1e-60, 1e60)


@dataclass(frozen=True)
class Diagnosis(JsonRecord):
    """Result of :func:`diagnose`: ``print(found)`` says it in words, ``print(found.explain())`` the rest.

    Attributes
    ----------
    vectors : Vectors
    spectrum : PrefixCurve or None
        Share of the variance explained by the first k principal axes; None where nothing varies.
    kind : str
        What a code is for: "labels", "targets", "pairs", "judgements" or "none".
    classes : int
        Number of classes, 0 without labels.
    ranking : Ranking or None
        Objectives in the order of their held-out scores, and the one to fit.
    unranked : str
        Why there is no ranking, where one was asked for.
    command : str
        What to run next: a call in Python, or a command where the diagnosis came from the command line. Empty without
        a ranking.
    rows_in_file : int
        How many rows there are, where only a sample of a file was read; otherwise 0.
    """

    FORMAT, AGAIN, IGNORED = "firstk.Diagnosis/1", "diagnose again", ("problems",)

    vectors: Vectors
    spectrum: PrefixCurve | None
    kind: str
    classes: int
    ranking: Ranking | None
    unranked: str = ""
    command: str = ""
    rows_in_file: int = 0

    def __str__(self) -> str:
        from firstk.words.diagnosis import answer

        return "\n".join(answer(self))

    def explain(self) -> str:
        """Return the rest of what there is to say, in words and tables."""
        from firstk.words.diagnosis import explanation

        return "\n".join(explanation(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, with the reason codes of what is wrong with the vectors."""
        return {"format": self.FORMAT, "problems": list(self.vectors.problems), **to_plain(self)}


def diagnose(
    X: ArrayLike | Task | Data | Stream | None = None,
    y: ArrayLike | None = None,
    *,
    kind: str = "auto",
    pairs: Sequence[ArrayLike] | None = None,
    search: Search | None = None,
    compare: bool = True,
    progress: Callable[[str], object] | None = None,
    verbose: Verbose = "auto",
) -> Diagnosis:
    """Diagnose which objective fits best, and what is unusual about the vectors.

    Every objective that the data allow is fitted on a sample and evaluated on held-out rows, pairs or queries at 8, 16,
    32 and 64 coordinates; `Diagnosis.command` is the call to make next.

    Parameters
    ----------
    X : array-like of shape (n, p), Task, Rows, Pairs, Search or Stream, optional
        Vectors, or what a task learns from: ``diagnose(firstk.read("docs.parquet"))``. If not given, they are the
        documents of `search`, or both sides of `pairs`.
    y : array-like of shape (n,) or (n, q), optional
        Labels or numeric targets.
    kind : {"auto", "labels", "targets"}
        Type of `y`. "auto": floating-point numbers are targets, everything else labels.
    pairs : sequence of array-like, optional
        (left, right) or (left, right, scores): vectors of each side, and how alike they are. Objectives are compared by
        the rank correlation with the scores; without scores, by whether the left side finds the right one.
    search : Search, optional
        Objectives are compared by nDCG@10 over all documents. They learn
        from `pairs`, and without those from the judgements of queries that are not held out.
    compare : bool
        Compare objectives; otherwise only the vectors are described.
    progress : callable, optional
        Called with the name of each part, and of each objective, before it is computed.
    verbose : bool or "auto"
        Without `progress`: show these names; "auto": where it takes long, on a terminal or in a notebook.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from firstk import diagnose
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> found = diagnose(digits.X, digits.y, compare=False)
    >>> found.vectors.rank, found.vectors.problems
    (61, ('lossless', 'constant'))
    """
    trials, gathered = None, None
    data: Any = X.train if isinstance(X, Task) else X
    rows: Any = data
    if isinstance(data, (Rows, Pairs, Search, Stream)):
        if any(part is not None for part in (y, pairs, search)):
            raise InvalidInputError("diagnose takes a task or an array: y, pairs and search go with an array.")
        rows = None
        if isinstance(data, Rows):
            rows, y = data.X, data.y
        elif isinstance(data, Pairs):
            rows, pairs = data.documents, [part for part in (data.left, data.right, data.scores) if part is not None]
        elif isinstance(data, Search):
            search = data
        else:
            batches = ((batch["X"], batch.get("y")) for batch in data.batches())
            gathered = gather_batches(batches, data.rows, data.width, kind)
            if data.queries is not None:
                search = Search(data.queries, gathered.sample["X"])
    if pairs is not None or search is not None:
        if y is not None:
            raise InvalidInputError("diagnose takes labels or targets (y), or pairs and judgements, not both.")
        rows, trials = trials_of(rows, pairs, search)
    if gathered is None and rows is None:
        raise InvalidInputError(
            "diagnose needs vectors: pass X, what firstk.read makes of a file, or pairs, or search with documents."
        )
    gathered = gathered or gather(rows, y, kind)
    with steps("diagnosing", check_verbose(verbose, "diagnose") if progress is None else False) as begin:
        return diagnose_gathered(gathered, trials, compare=compare, progress=progress or begin)


def diagnose_gathered(
    gathered: Gathered,
    trials: Trials | None = None,
    *,
    compare: bool = True,
    progress: Callable[[str], object] = lambda name: None,
) -> Diagnosis:
    """Diagnose data gathered from a stream; see :func:`diagnose`.

    `trials` are pairs or judgements to compare objectives on; without them, the gathered rows are.
    """
    progress("spectrum")
    moments, spectrum = gathered.moments, spectrum_of(gathered.moments)
    full = not gathered.few and surely_full(spectrum, moments)
    ranking, unranked, y = None, "", gathered.sample.get("y")
    if not compare:
        pass
    elif not len(spectrum):
        differ = bool(np.any(gathered.sums.least < gathered.sums.most))
        unranked = f"the vectors {'vary too little for their precision: scale them up.' if differ else 'do not vary.'}"
    elif not SINGLE_PRECISION[0] < spectrum[0] < SINGLE_PRECISION[1]:
        far = "large: scale them down." if spectrum[0] > 1 else "small: scale them up."
        unranked = f"rows are compared in single precision, for which these are too {far}"
    elif y is not None and bool(np.all(y == y[:1])):
        unranked = f"all rows have {'one class' if gathered.kind == 'labels' else 'one value'}; give at least two."
    else:
        progress("ranking")
        try:
            trials = trials or row_trials(gathered.sample["X"], y, gathered.kind)
            ranking = compare_objectives(trials, progress)
        except FirstkError as error:
            unranked = str(error)
    return Diagnosis(
        vectors=describe(
            gathered.sums, spectrum, (len(spectrum),) * 3 if full else ranks_of(moments), min(moments.input_eps, SINGLE)
        ),
        spectrum=None
        if not len(spectrum)
        else PrefixCurve(
            tuple(range(1, len(spectrum) + 1)),
            variance_shares(spectrum).tolist(),
            "share of variance",
            label="variance",
        ),
        kind=gathered.kind if trials is None else trials.task,
        classes=gathered.classes,
        ranking=ranking,
        unranked=unranked,
        command="" if ranking is None else ranking.chosen.python,
    )
