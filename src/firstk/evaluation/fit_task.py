"""What a fit on files learns from, and what it is evaluated on: rows, pairs, or judged searches over a whole store.

Pairs and judgements are divided by query, so that no query is on both sides. A search is evaluated among all documents,
because that is where its codes will be used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk._base.remote import place_of, shown_place
from firstk.estimator.fit_files import MOST_HELD, StreamedFit, draw, draw_groups
from firstk.evaluation.held_out import Provenance, provenance_of
from firstk.evaluation.inputs import Stream, VectorSource, open_stream, read_held_out
from firstk.evaluation.judged_pairs import JudgedPairs, read_judged_pairs
from firstk.evaluation.new_documents import population_of
from firstk.evaluation.query_split import QuerySplit
from firstk.exceptions import InvalidInputError
from firstk.moments.stream import Chunks, Columns, HoldOut, len_of

# Scores of no more values than this may be grades of relevance.
MOST_GRADES = 5


@dataclass(frozen=True, eq=False)
class FitTask:
    """What a fit reads, and what is held out of it.

    Attributes
    ----------
    stream : Stream
        Rows or pairs.
    parts : HoldOut
        Which of them are held out.
    held : mapping, optional
        Rows or pairs of the user's own held-out file.
    split : QuerySplit, optional
        Judged searches to evaluate on, in place of rows.
    drawn_from : str
        Where the held-out part is from.
    documents : ndarray, optional
        All of the store, where pairs or judgements name documents of it.
    """

    stream: Stream
    parts: HoldOut
    held: Columns | None
    split: QuerySplit | None
    drawn_from: str
    documents: np.ndarray | None = None

    def dropped(self, done: StreamedFit) -> int:
        """Return how many rows were left out of a fit because of NaN."""
        return self.stream.rows - done.rows - (len_of(done.held) if self.held is None else 0)

    def searched(self, done: StreamedFit) -> StreamedFit:
        """Return the fit with the searches that it is evaluated on, where documents are judged."""
        if self.split is None or not len(self.split.held):
            return done
        data = self.split.evaluation
        held = {"X": np.asarray(data.queries)}
        return replace(done, held=held, reference={"X": self.split.judged.documents}, search=data)

    def provenance(
        self, done: StreamedFit, place: VectorSource, image_shape: tuple[int, ...] | None = None
    ) -> Provenance:
        """Collect what a page says about the fit."""
        found = provenance_of(done, place, self.stream, self.drawn_from, image_shape)
        if self.split is None or done.search is None:
            return found
        data, judged = done.search, self.split.judged
        what = "pairs" if len(self.split.learned) else "rows"
        counts = {f"{what} fitted on": int(done.encoder.encoder_.config["rows"]), "queries held out": len_of(done.held)}
        facts = {name: value for name, value in found.facts.items() if not name.startswith(("pairs ", "rows "))}
        return replace(
            found,
            facts=facts | counts | {"documents": len(np.asarray(data.documents))},
            rows=len(judged.documents),
            itemsize=judged.itemsize,
            held_out=" ".join(filter(None, (judged.described(data), self.drawn_from, population_of(data).sentence))),
        )


def open_fit(place: VectorSource, held_out: str, seed: int = 0, *, from_pairs: bool = True) -> FitTask:
    """Open what a fit learns from, and divide it.

    Parameters
    ----------
    place : VectorSource
    held_out : str
        A share of the rows or queries, 0 for none, or a file: of rows, of pairs, or of judgements.
    seed : int
    from_pairs : bool
        Whether the objective learns from pairs. If not, judgements only evaluate it, and all queries are held out.
    """
    place.check()
    share = _share_of(held_out)
    if place.pairs is None and (place.relevance is None or not from_pairs):
        stream = open_stream(place)
        if place.relevance is None:
            return _of_rows(place, stream, held_out, share, seed)
        return FitTask(stream, HoldOut.nothing(), None, *_only_evaluated(place, held_out, share))
    judged = read_judged_pairs(place)
    if not judged.searches:
        return _of_scored(place, judged, held_out, share, seed)
    if share is None:
        split, drawn_from = _own_judgements(place, judged, held_out)
    else:
        split = QuerySplit.by_query(judged, share, seed)
        drawn_from = (
            f"They were held out at random, seed {seed}: none of their judgements was learned from, but other queries "
            "may have taught the same documents."
        )
    stream = stream_of_pairs(split.positives())
    return FitTask(stream, HoldOut.nothing(), None, split, drawn_from, _store_of(judged))


def _share_of(held_out: str) -> float | None:
    """Return the share that was asked for; None where a file was."""
    try:
        return float(held_out)
    except ValueError:
        return None


def _of_rows(place: VectorSource, stream: Stream, held_out: str, share: float | None, seed: int) -> FitTask:
    own = None if share is not None else read_held_out(place, held_out)
    _check_width(own, stream, held_out, place)
    drawn_from = held_out if share is None else f"{place_of(place.source).name} (drawn at random, seed {seed})"
    return FitTask(stream, draw(stream.rows, share or 0.0, seed), own, None, drawn_from)


def _of_scored(place: VectorSource, judged: JudgedPairs, held_out: str, share: float | None, seed: int) -> FitTask:
    """Divide scored pairs by their left sides."""
    stream, own = stream_of_pairs(judged.columns), None
    if share is None:
        own = read_judged_pairs(replace(place, pairs=held_out)).columns
        _check_width(own, stream, held_out, place)
    lefts = np.unique(judged.pairs[:, 0], return_inverse=True)[1].ravel()
    drawn_from = held_out if share is None else f"{judged.names[1]} (drawn at random by left side, seed {seed})"
    if judged.store is not None and judged.scores is not None and len(np.unique(judged.scores)) <= MOST_GRADES:
        drawn_from += "; if scores are grades of relevance, --relevance evaluates by search among all rows"
    return FitTask(stream, draw_groups(lefts, share or 0.0, seed), own, None, drawn_from, _store_of(judged))


def _store_of(judged: JudgedPairs) -> np.ndarray | None:
    """Return the documents of the store; None of pairs of vectors, which are from none that is known."""
    return None if judged.store is None else judged.documents


def _only_evaluated(place: VectorSource, held_out: str, share: float | None) -> tuple[QuerySplit | None, str]:
    """Hold out all queries, as nothing is learned from judgements; a file of judgements takes their place."""
    if share == 0:
        return None, ""
    judged = read_judged_pairs(place if share is not None else replace(place, relevance=held_out))
    nothing = np.arange(0)
    return QuerySplit(judged, nothing, judged.some_queries(MOST_HELD)), "No judgement was learned from."


def _own_judgements(place: VectorSource, judged: JudgedPairs, held_out: str) -> tuple[QuerySplit, str]:
    """Take the judgements of a file of one's own as the held-out ones; their queries are not learned from."""
    own = read_judged_pairs(
        replace(place, pairs=held_out) if place.relevance is None else replace(place, relevance=held_out)
    )
    if own.documents.shape[1] != judged.documents.shape[1]:
        raise _other_width(held_out, own.documents.shape[1], place, judged.documents.shape[1])
    n, both = len(judged.pairs), judged.joined(own)
    queries, theirs = both.pairs[:n, 0], both.pairs[n:, 0]
    shared = np.isin(queries, theirs)
    split = QuerySplit(both, np.flatnonzero(~shared), np.arange(n, len(both.pairs)))
    count = len(np.unique(queries[shared]))
    also = f" {count:,} queries of it are in the training judgements too, and were not learned from." if count else ""
    return split, f"Judgements of {place_of(held_out.rpartition(':')[0] or held_out).name} were held out.{also}"


def _check_width(own: Columns | None, stream: Stream, file: str, place: VectorSource) -> None:
    if own is not None and (found := next(iter(own.values())).shape[1]) != stream.width:
        raise _other_width(file, found, place, stream.width)


def _other_width(file: str, found: int, place: VectorSource, width: int) -> InvalidInputError:
    return InvalidInputError(
        f"'{shown_place(file)}' has vectors of {found} numbers, and '{shown_place(place.source)}' of {width}. Give "
        "vectors of the same model, or name their column with --vectors."
    )


def stream_of_pairs(columns: Columns) -> Stream:
    """Return pairs as a stream; they are held in memory, as they look rows up in any order."""
    n, width = columns["left"].shape
    return Stream(n, width, columns["left"].dtype.itemsize, None, "", Chunks.of([columns]))
