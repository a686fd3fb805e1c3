"""What ``firstk curve`` judges by: rows, pairs or judged documents read from files, and a sentence that says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstk.cli._streams import Stream, VectorSource, open_stream
from firstk.evaluation.overlap import HELD_OUT, SEED, TrainingOverlap, same_file, seed_of, seen_by, shared_rows
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

    from firstk.encoder.fitted import FittedEncoder
    from firstk.metrics.curve import EvaluationData

# Metrics whose readout or neighbors need rows of their own: without a reference, the file is split.
SPLIT = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")
# Metrics of an encoder's own head: baselines have none, and no other row is looked at.
OURS_ALONE = ("head_accuracy", "mixture")
# Metrics that look at no other rows but to fit baselines on.
ALONE = (*OURS_ALONE, "explained_variance")


# Rows that judge, rows to look among, the sentence about them, and notes.
_Parts = tuple[dict[str, "np.ndarray"], dict[str, "np.ndarray"], str, tuple[str, ...]]


@dataclass(frozen=True)
class CurveRequest:
    """Where evidence comes from, in the words of the command's options."""

    place: VectorSource
    reference: str | None = None
    reference_labels: str | None = None
    relevance: str | None = None
    documents: str | None = None
    ids: str | None = None
    most: int = 20_000


@dataclass(frozen=True, eq=False)
class EvaluationInput:
    """EvaluationData, and what to say about it.

    Attributes
    ----------
    evidence : EvaluationData
    metric : str
    said : str
        A sentence: which rows judge, against which.
    training : ndarray or None
        Rows on which baselines may be fitted.
    itemsize : int
        Bytes of a number in the file.
    store : str or None
        The file whose vectors would be stored, where there is one.
    notes : tuple of str
        What makes these scores look better than they are, and options that were of no use.
    """

    evidence: EvaluationData
    metric: str
    said: str
    training: np.ndarray | None
    itemsize: int
    store: str | None = None
    notes: tuple[str, ...] = ()


def gather(encoder: FittedEncoder, asked: CurveRequest, metric: str) -> EvaluationInput:
    """Read what the metric needs, or what its options name."""
    if asked.relevance is not None:
        return _searches(encoder, asked, metric)
    if asked.documents is not None or asked.ids is not None:
        raise InvalidInputError("--documents and --id belong to --relevance, which is missing.")
    if asked.place.pairs is not None:
        return _pairs(encoder, asked, metric)
    return _rows(encoder, asked, _metric_of_rows(encoder, asked, metric))


def _metric_of_rows(encoder: FittedEncoder, asked: CurveRequest, metric: str) -> str:
    from firstk.metrics.curve import METRICS

    own = str(encoder.config["metric"])
    name = metric if metric != "auto" else "recall@10" if own == "pair_agreement" else own
    needs = METRICS[name].needs
    options = {"left": "pairs: --pairs", "relevance": "judged documents: --relevance and --documents"}
    for need, option in options.items():
        if need in needs:
            raise InvalidInputError(f"The metric '{name}' needs {option}.")
    if "y" in needs and asked.place.label is None and asked.place.labels is None:
        raise InvalidInputError(
            f"The metric '{name}' needs labels or targets: name their column with --label, or their file with "
            "--labels. Without any, --metric recall@10 or readback_variance will do."
        )
    return name


def _rows(encoder: FittedEncoder, asked: CurveRequest, metric: str) -> EvaluationInput:
    from firstk.metrics.curve import EvaluationData

    stream = _opened(asked.place, encoder)
    seen = seen_by(encoder, stream, asked.place.nan)
    useless = _about_reference(asked, metric)
    if asked.reference is not None and not useless:
        found, reference, said, notes = _against(encoder, stream, asked, metric, seen)
    elif metric in SPLIT or (seen is not None and seen.held):
        found, reference, said, notes = _divided(encoder, stream, asked, metric, seen)
    else:
        found, judged = _sample(stream, asked.most)
        reference, said, notes = {}, f"Judged on {judged} of {_name(asked.place.source)}.", _about_seen(seen, asked)
    evidence = EvaluationData(X=found["X"], y=found.get("y"), X_ref=reference.get("X"), y_ref=reference.get("y"))
    store = asked.place.source if asked.reference is None else asked.reference
    return EvaluationInput(evidence, metric, said, reference.get("X"), stream.itemsize, store, (*useless, *notes))


def _about_reference(asked: CurveRequest, metric: str) -> tuple[str, ...]:
    """Say why a reference is not used, where it is of no use."""
    if asked.reference is None:
        return ()
    if metric in OURS_ALONE:
        return (f"--reference is not used: {metric} looks at no other rows. --metric probe_accuracy does.",)
    if same_file(asked.place.source, asked.reference):
        return (
            f"--reference is not used: it is {_name(asked.place.source)} itself, and no row is judged by itself. Give "
            "other rows.",
        )
    return ()


def _against(
    encoder: FittedEncoder, stream: Stream, asked: CurveRequest, metric: str, seen: TrainingOverlap | None
) -> _Parts:
    """Take the rows of the file, and those of the reference."""
    found, judged = _sample(stream, asked.most)
    reference, among = _sample(_opened(_reference_place(asked), encoder), asked.most)
    file, other = _name(asked.place.source), _name(asked.reference)
    notes = _about_seen(seen, asked)
    if metric in ALONE:
        return found, reference, f"Judged on {judged} of {file}; baselines are fitted on {among} of {other}.", notes
    if shared := shared_rows(found["X"], reference["X"]):
        notes += (
            f"{shared:,} of the rows judged are in {other} too and find themselves there, so these scores are better "
            "than those of new rows. Take such rows out of one of the files.",
        )
    return found, reference, f"Judged on {judged} of {file}, against {among} of {other}.", notes


def _divided(
    encoder: FittedEncoder, stream: Stream, asked: CurveRequest, metric: str, seen: TrainingOverlap | None
) -> _Parts:
    """Take a part of the file, and the others: the part that was held out, where the model was fitted on the others."""
    from firstk.estimator.fit_files import draw

    if seen is None or not seen.held:
        # Nothing is known of these rows, or all were seen: the usual draw gives rows to look among all the same.
        parts, seed, rest, notes = draw(stream.rows, HELD_OUT, SEED), SEED, "", _about_seen(seen, asked)
    else:
        parts, seed, notes = seen.parts, seed_of(encoder.config), ()
        rest = f" The model was fitted on the other {seen.fitted:,}."
    found, reference = _taken(stream, [_at_most(parts.held, asked.most), _at_most(parts.reference, asked.most)])
    _check_some(found, asked.place.source)
    said = (
        f"Judged on {len(found['X']):,} rows of {_name(asked.place.source)} that are held out (drawn at random, seed "
        f"{seed}, as 'firstk fit' does)"
    )
    if metric not in ALONE:
        said += f", against {len(reference['X']):,} others of it. Give rows of their own with --reference"
    return found, reference, f"{said}.{rest}", notes


def _about_seen(seen: TrainingOverlap | None, asked: CurveRequest) -> tuple[str, ...]:
    """Say that the model was fitted on rows that judge it, and the way to rows that it has not seen."""
    if seen is None:
        return ()
    way = f"Without --reference the {seen.held:,} others judge." if seen.held else "Judge on other rows."
    return (
        f"The model was fitted on {seen.fitted:,} rows of {_name(asked.place.source)}, so these scores are better than "
        f"those of new rows. {way}",
    )


def _pairs(encoder: FittedEncoder, asked: CurveRequest, metric: str) -> EvaluationInput:
    from firstk.metrics.curve import METRICS, EvaluationData, pair_metric

    if metric != "auto" and "left" not in METRICS[metric].needs:
        raise InvalidInputError(f"The metric '{metric}' is not one of pairs: use spearman or positive_recall@10.")
    stream = _opened(asked.place, encoder)
    found, judged = _sample(stream, asked.most, "pairs")
    evidence = EvaluationData(left=found["left"], right=found["right"], scores=found.get("scores"))
    said = f"Judged on {judged} of {_name(asked.place.pairs)}."
    training = None
    if asked.reference is not None:
        training = _sample(_opened(VectorSource(asked.reference, asked.place.vectors), encoder), asked.most)[0]["X"]
    name = pair_metric(evidence) if metric == "auto" else metric
    return EvaluationInput(evidence, name, said, training, stream.itemsize)


def _searches(encoder: FittedEncoder, asked: CurveRequest, metric: str) -> EvaluationInput:
    from firstk.cli._inputs import read_rows
    from firstk.metrics.curve import EvaluationData

    if metric not in ("auto", "ndcg@10") or asked.place.pairs is not None:
        raise InvalidInputError("--relevance goes with --metric ndcg@10, and not with --pairs.")
    place = asked.place
    queries = read_rows(place.source, vectors=place.vectors, label=asked.ids, nan=place.nan)
    same = asked.documents is None
    documents = queries if same else read_rows(asked.documents, vectors=place.vectors, label=asked.ids, nan=place.nan)
    for rows, source in ((queries, place.source), (documents, asked.documents or place.source)):
        _check_width(rows.X.shape[1], encoder, source)
    assert asked.relevance is not None
    relevance = _judgements(asked.relevance, queries, documents)
    judged = len(set(relevance[:, 0].tolist()))
    said = (
        f"Judged on {judged:,} queries of {_name(place.source)} with {len(relevance):,} judgements, among "
        f"{len(documents.X):,} documents of {_name(asked.documents or place.source)}."
    )
    evidence = EvaluationData(queries=queries.X, documents=documents.X, relevance=relevance)
    store = asked.documents or place.source
    return EvaluationInput(evidence, "ndcg@10", said, documents.X, documents.table.dtype.itemsize, store)


def _judgements(spec: str, queries: Any, documents: Any) -> np.ndarray:
    """Read judgements as rows of (query row, document row, grade); a file without grades says 1."""
    import numpy as np

    from firstk.cli._inputs import _source_of_pairs, _usual_names
    from firstk.data.files.beside import load_columns
    from firstk.data.files.choosing import missing_column

    source, names = _source_of_pairs(None, spec)
    if source is None:
        raise InvalidInputError(f"Judgements are FILE or FILE:QUERY,DOCUMENT[,GRADE], and '{spec}' names no file.")
    held = load_columns(source)
    names = names or _usual_names(source, list(held))
    for name in names:
        if name not in held:
            raise missing_column(source, name, list(held))
    columns = [held[name] for name in names]
    grades = np.ones(len(columns[0]), dtype=np.int64) if len(names) == 2 else _grades(columns[2], names[2], source)
    sides = [
        _rows_named(column, rows, what, source)
        for column, rows, what in zip(columns[:2], (queries, documents), ("query", "document"), strict=True)
    ]
    return np.column_stack([*sides, grades])


def _grades(column: np.ndarray, name: str, source: Any) -> np.ndarray:
    import numpy as np

    if column.dtype.kind not in "iufb" or (column != np.rint(column.astype(float))).any():
        raise InvalidInputError(
            f"Grades of relevance are whole numbers, and column '{name}' of '{source}' holds others."
        )
    return column.astype(np.int64)


def _rows_named(column: np.ndarray, rows: Any, what: str, source: Any) -> np.ndarray:
    """Turn row numbers of a file, or ids in its --id column, into rows of what was read."""
    import numpy as np

    if rows.y is None and column.dtype.kind not in "iu":
        raise InvalidInputError(
            f"'{source}' names a {what} by {str(column[0])!r}, which is no row number. Say which column of "
            f"'{rows.table.path}' holds such ids with --id."
        )
    # As text, because one file may hold "17" and the other 17.
    known = [str(name) for name in (rows.rows if rows.y is None else rows.y).tolist()]
    place = {name: i for i, name in enumerate(known)}
    if len(place) < len(known):
        raise InvalidInputError(
            f"'{rows.table.path}' has {len(known) - len(place)} ids twice; judgements cannot tell them apart."
        )
    wanted = [str(name) for name in column.tolist()]
    missing = [name for name in wanted if name not in place]
    if missing:
        raise InvalidInputError(
            f"'{source}' judges {what} {missing[0]}, which is not in '{rows.table.path}' ({len(known):,} rows); "
            f"{len(set(missing)):,} are missing in all."
        )
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _opened(place: VectorSource, encoder: FittedEncoder) -> Stream:
    stream = open_stream(place)
    _check_width(stream.width, encoder, place.source)
    return stream


def _check_width(width: int, encoder: FittedEncoder, source: Any) -> None:
    if width != encoder.p:
        raise InvalidInputError(
            f"'{source}' has vectors of {width} numbers, and this model takes {encoder.p}. Give the file that goes "
            "with it, or name the vector column with --vectors."
        )


def _reference_place(asked: CurveRequest) -> VectorSource:
    place = asked.place
    if place.labels is not None and asked.reference_labels is None:
        raise InvalidInputError(
            "--labels is the file of the labels of VECTORS; give that of --reference as --reference-labels."
        )
    label = None if asked.reference_labels is not None else place.label
    return VectorSource(asked.reference, place.vectors, label, asked.reference_labels, nan=place.nan)


def _sample(stream: Stream, most: int, what: str = "rows") -> tuple[dict[str, np.ndarray], str]:
    """Take all rows of a stream, or as many as are wanted at most; and say how many of how many."""
    import numpy as np

    n = stream.rows
    if n > most:
        wanted = np.sort(np.random.default_rng(SEED).choice(n, size=most, replace=False))
        (found,) = _taken(stream, [wanted])
        return found, f"{len(next(iter(found.values()))):,} of {n:,} {what} (drawn at random, seed {SEED})"
    (found,) = _taken(stream, [np.arange(n)])
    _check_some(found, what)
    return found, f"{len(next(iter(found.values()))):,} {what}"


def _at_most(rows: np.ndarray, most: int) -> np.ndarray:
    import numpy as np

    return rows if len(rows) <= most else np.sort(np.random.default_rng(SEED).choice(rows, size=most, replace=False))


def _check_some(found: dict[str, np.ndarray], source: Any) -> None:
    if not found:
        raise InvalidInputError(f"There are no rows to judge by in '{source}'.")


def _taken(stream: Stream, wanted: Sequence[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Keep the rows with the given numbers, ascending, of a stream: memory for those and one batch."""
    import numpy as np

    from firstk._base.rows import half_as_single

    piles: list[dict[str, list[np.ndarray]]] = [{} for _ in wanted]
    start = 0
    for batch in stream.batches():
        count = len(next(iter(batch.values())))
        for rows, pile in zip(wanted, piles, strict=True):
            here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + count)] - start
            for name, part in batch.items():
                if len(here):
                    pile.setdefault(name, []).append(half_as_single(part[here]))
        start += count
    return [{name: np.concatenate(parts) for name, parts in pile.items()} for pile in piles]


def _name(path: Any) -> str:
    return Path(str(path)).name or str(path)
