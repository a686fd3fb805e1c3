"""Queries, documents and pairs of them, read from files: judgements of relevance, positives, or scored pairs.

Entries name a query and a document, and perhaps say how well they go together. Where that is no score to be matched, it
is a search: all documents are candidates for every query.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from firstk._base.checks import check_weights
from firstk._base.rows import distinct_rows, half_as_single
from firstk.advice.inputs import File, RowsOfFile, VectorSource, read_rows
from firstk.data.files import VectorTable, open_vectors
from firstk.data.files.column_files import load_columns
from firstk.data.files.text_cells import Cells, is_number
from firstk.data.files.text_files import open_text, reading_text
from firstk.data.files.vector_columns import ID_NAMES, missing_column
from firstk.data.files.vector_table import find_files
from firstk.data.remote import is_there, place_of
from firstk.data.task import Pairs, Search, n_rows
from firstk.exceptions import FirstkWarning, InvalidInputError
from firstk.metrics.judgements import as_text, rows_of_ids

# Files of text, which may have no line of names; TREC's judgements usually end in .txt or .qrels.
_TEXT = (".csv", ".tsv", ".tab", ".txt", ".qrels")
# The column of TREC's four that says nothing.
_ITERATION = ("0", "Q0")
# Usual names of the columns of a file of judgements or pairs.
_USUAL = {
    "query": ("query_id", "qid", "queryid", "query", "question_id", "question", "left", "anchor", "topic"),
    "document": (
        *("corpus_id", "doc_id", "docid", "did", "document_id", "document", "doc", "passage_id", "pid"),
        *("right", "positive"),
    ),
    "grade": ("score", "scores", "grade", "relevance", "rel", "label"),
}


@dataclass(frozen=True, eq=False)
class Judged:
    """Judgements or pairs that were read, and where they are from.

    Attributes
    ----------
    data : Search or Pairs
        Pairs where scores are to be matched; else searches, in which all documents are candidates for every query.
    names : (str, str)
        What the queries' and the documents' files are called.
    store : path or None
        The documents' file, where there is one.
    itemsize : int
        Bytes of a number in it.
    lefts : ndarray of int
        Of pairs, the number of the left side of each.
    file_rows : (ndarray, ndarray), optional
        Row numbers of the queries and of the documents in their files, where they come from files of rows.
    """

    data: Search | Pairs
    names: tuple[str, str]
    store: File | None
    itemsize: int
    lefts: np.ndarray
    file_rows: tuple[np.ndarray, np.ndarray] | None = None

    def described(self, data: Search) -> str:
        """Say how many queries are evaluated in `data`, among how many documents."""
        n, relevance = n_rows(data.documents), np.asarray(data.relevance)
        among = f"among {n:,} documents of {self.names[1]}"
        field = None if data.document_field is None else np.asarray(data.document_field)
        if field is not None and field.dtype == bool:  # one value for all queries
            among = f"among {field.sum():,} documents of {self.names[1]} that the filter leaves of {n:,}"
            relevance = relevance[field[relevance[:, 1]]]
        elif field is not None:
            among += ", each within its own value of the filter's field"
        text = f"Evaluated on {data.n:,} queries of {self.names[0]} with {len(relevance):,} judgements, {among}."
        text += "" if data.weight is None else " Queries are weighted."
        if self.store is None:
            text += (
                " Candidates are the right sides of the pairs, and a larger store is harder to search: to search all "
                "of it, give the store as VECTORS and pairs by ids."
            )
        return text


def as_search(left: np.ndarray, right: np.ndarray, store: np.ndarray | None = None) -> Search:
    """Return the searches of positive pairs: each right side is relevant to its left.

    Copies of a document are one document, and so are copies of a query. Documents of `store` are searched as well.
    """
    everything = right if store is None else np.concatenate([right, store.astype(right.dtype)])
    (asked, query), (first, document) = distinct_rows(left), distinct_rows(everything)
    found = np.unique(np.column_stack([query, document[: len(right)], np.ones(len(right), dtype=int)]), axis=0)
    return Search(left[asked], everything[first], found)


def read_judged(place: VectorSource, *, same_width: bool = True) -> Judged:
    """Read the judgements (`relevance`) or pairs (`pairs`) of a source, and the vectors that they name.

    Unless `same_width`, queries may have another width than documents: two models made them.
    """
    if place.pairs is not None and place.relevance is not None:
        raise InvalidInputError("Pairs come from pairs= or from relevance=, not from both: leave one out.")
    graded = place.relevance is not None
    spec = str(place.relevance if graded else place.pairs)
    source, held, names = read_columns(
        None if graded else place.source, spec, lambda words: _name_rows_of(place, words)
    )
    columns = [np.asarray(held[name]) for name in names]
    named = [_names_rows(column) for column in columns[:2]]
    if not all(named):
        if any(named):
            swapped = " Or were queries= and relevance= swapped?" if graded and place.queries is not None else ""
            raise InvalidInputError(
                f"'{source}' names rows in one column only: {names[named.index(False)]!r} holds no ids or row numbers. "
                f"Name the two columns that do, as in '{source}:query,document'.{swapped}"
            )
        return _of_vectors(place, source, names, graded)
    if not len(columns[0]):
        raise InvalidInputError(f"'{source}' holds no judgements or pairs.")
    return _of_names(place, source, names, columns, graded, same_width)


def read_columns(
    path: File | None, spec: str, are_ids: Callable[[Sequence[str]], bool] = lambda _: False
) -> tuple[File, Mapping[str, np.ndarray], tuple[str, ...]]:
    """Open the two or three columns that [FILE:]LEFT,RIGHT[,SCORE] or FILE names; of `path` where no file is named.

    `are_ids` tells whether two words are ids of a query and of a document: then the first line is no line of names.
    """
    source: File | None = spec
    names: tuple[str, ...] = ()
    if not is_there(spec):
        file, _, words = spec.rpartition(":")
        source, names = file or path, tuple(name.strip() for name in words.split(",") if name.strip())
        if len(names) not in (2, 3):
            raise InvalidInputError(
                "Pairs are [FILE:]LEFT,RIGHT[,SCORE], two or three names of columns, or the name of a file. Got "
                f"'{spec}'."
            )
    if source is None:
        raise InvalidInputError(f"Judgements are FILE or FILE:QUERY,DOCUMENT[,GRADE], and '{spec}' names no file.")
    held = (None if names else _without_names(source, are_ids)) or load_columns(source)
    if not names:  # by their usual names, or all there are
        every = list(held)
        found = [[name for name in every if usual(name) in _USUAL[side]] for side in _USUAL]
        rest = found[2] or ([name for name in every if name not in (*found[0], *found[1])] if len(every) == 3 else [])
        if len(found[0]) == len(found[1]) == 1 and len(rest) < 2:
            names = (found[0][0], found[1][0], *rest)
        elif len(every) in (2, 3):
            names = tuple(every)
        else:
            shown = ", ".join(map(repr, every[:20]))
            raise InvalidInputError(
                f"Which columns of '{source}' are the pairs? Say {source}:LEFT,RIGHT[,SCORE]. It has: {shown}."
            )
    for name in names:
        if name not in held:
            raise missing_column(source, name, list(held))
    return source, held, names


def _without_names(source: File, are_ids: Callable[[Sequence[str]], bool]) -> Mapping[str, np.ndarray] | None:
    """Return the columns of a text file whose first line is a judgement; None where it names the columns."""
    files = find_files(source)
    if not all(file.name.lower().removesuffix(".gz").endswith(_TEXT) for file in files):
        return None
    rows: list[list[str]] = []
    for file in files:
        with reading_text(file, "text", csv.Error), open_text(file) as lines:
            first = next((line for line in lines if line.strip()), "")
            trec = first.split()[1:2] in ([one] for one in _ITERATION)  # by any white space
            mark = None if trec else next((mark for mark in "\t,;|" if mark in first), None)
            split = next(csv.reader([first], delimiter=mark), []) if mark else first.split()
            if not rows and not _is_judgement(source, [cell.strip() for cell in split], are_ids):
                return None
            found = csv.reader(lines, delimiter=mark, strict=True) if mark else map(str.split, lines)
            rows += [split, *(row for row in found if row)]
    width = len(rows[0])
    wrong = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if wrong is not None:
        raise InvalidInputError(
            f"'{source}' has {len(rows[wrong])} cells in line {wrong + 1} (blank lines apart), and {width} in its "
            "first line. Mend that line."
        )
    names = {2: ("query", "document"), 3: ("query", "document", "grade"), 4: ("query", "", "document", "grade")}[width]
    return {name: _typed(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True) if name}


def _is_judgement(source: File, cells: Sequence[str], are_ids: Callable[[Sequence[str]], bool]) -> bool:
    """Tell a judgement from a line of names."""
    if any(cell.startswith("[") for cell in cells):
        raise InvalidInputError(
            f"The first line of '{source}' holds a vector where the names of the columns should be. Put a line of "
            "names before it, such as left,right,score."
        )
    if len(cells) == 4:
        return cells[1] in _ITERATION and is_number(cells[3])
    if len(cells) not in (2, 3) or any(usual(cell) in (*_USUAL["query"], *_USUAL["document"]) for cell in cells):
        return False
    if list(cells) in ([str(i) for i in range(start, start + len(cells))] for start in (0, 1)):
        if are_ids(cells[:2]):  # pandas numbers columns that have no names
            shown = ",".join(cells)
            raise InvalidInputError(
                f"The first line of '{source}', {shown}, may number the columns, or judge. If it numbers them, say "
                f"{source}:{shown}; if not, put a line of names before it, such as query,document,grade."
            )
        return False
    return is_number(cells[2]) if len(cells) == 3 else are_ids(cells)


def _typed(cells: Sequence[str]) -> np.ndarray:
    """Return a column as whole numbers, as numbers, or as text; 007 and 7 are two ids."""
    stripped = [cell.strip() for cell in cells]
    seen = Cells().taken(stripped)
    if seen.are_text or not all(map(is_number, stripped)):
        return np.array(stripped)
    return np.array(stripped).astype(np.int64 if seen.whole else np.float64)


def _name_rows_of(place: VectorSource, words: Sequence[str]) -> bool:
    """Tell whether two words may name rows of the queries and of the documents."""
    if not place.by_row:
        named = RowNames(place.ids).columns() or (None, None)
        for word, path, name in zip(words, (place.queries or place.source, place.source), named, strict=True):
            held = load_columns(path)
            ids = [one for one in held if (usual(one) in ID_NAMES if name is None else one == name)]
            if not any(word in as_text(held[one]) for one in ids):
                break
        else:
            return True
    return place.ids is None and all(word.isdecimal() for word in words)


def _names_rows(column: np.ndarray) -> bool:
    """Tell ids and row numbers from vectors, which csv files hold as lists in brackets."""
    if column.ndim != 1:
        return False
    if column.dtype.kind in "USO":
        first = column[:1].tolist()
        return not first or (isinstance(first[0], (str, bytes, int)) and not str(first[0]).lstrip().startswith("["))
    return column.dtype.kind in "iu" or (column.dtype.kind == "f" and bool((column == np.rint(column)).all()))


def _of_names(
    place: VectorSource,
    source: File,
    names: Sequence[str],
    columns: Sequence[np.ndarray],
    graded: bool,
    same_width: bool,
) -> Judged:
    """Return pairs that name rows of the documents, and of the queries' file or of the documents again."""
    how = RowNames(place.ids, place.by_row)
    named = how.columns() or (None, None)
    documents = read_side(place.source, place, named[1], _field_of(place), place.label)
    queries = documents
    if place.queries is not None:
        queries = read_side(place.queries, place, named[0], _field_of(place), place.query_weight)
        if same_width and queries.X.shape[1] != documents.X.shape[1]:
            raise InvalidInputError(
                f"'{place.queries}' has vectors of {queries.X.shape[1]} numbers, and '{place.source}' of "
                f"{documents.X.shape[1]}."
            )
    sides = queries, documents
    rows = []
    for side, file_rows in zip(sides, how.rows(columns[:2], [side.table for side in sides], source), strict=True):
        places = np.full(side.table.rows, -1)  # where each row of the file is among those that were read
        places[side.rows] = np.arange(len(side.rows))
        rows.append(places[file_rows])
    kept = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))  # rows with NaN were dropped, and their pairs with them
    scores = None if len(columns) == 2 else _scores(columns[2], names[2], source, graded)[kept]
    if graded:
        scores = np.ones(len(kept), dtype=np.int64) if scores is None else scores
        once = _judged_once(np.column_stack(rows)[kept], scores, [column[kept] for column in columns[:2]], source)
        kept, scores = kept[once], scores[once]
    pairs, alone = np.column_stack(rows)[kept], place.queries is None
    facts = {
        "names": (place_of(str(place.queries or place.source)).name, place_of(str(place.source)).name),
        "store": place.source,
        "itemsize": documents.table.dtype.itemsize,
        "lefts": np.unique(pairs[:, 0], return_inverse=True)[1].ravel(),
        "file_rows": (queries.rows, documents.rows),
    }
    if not graded and scores is not None and len(np.unique(scores)) > 1:
        return Judged(Pairs(queries.X[pairs[:, 0]], documents.X[pairs[:, 1]], scores, documents.X), **facts)  # type: ignore[arg-type]
    grades = scores if graded and scores is not None else np.ones(len(pairs), dtype=np.int64)
    relevance = np.column_stack([pairs, grades])
    if not graded:  # a positive that is given twice is one
        relevance = np.unique(relevance, axis=0)
    if alone:  # a row is no answer to itself
        relevance = relevance[relevance[:, 0] != relevance[:, 1]]
    if not len(relevance):
        raise InvalidInputError(f"No judgement of {source} is left: every one was left out.")
    weight = None
    if place.query_weight is not None:
        weight = column_of(queries.table, place.query_weight)[queries.rows]
        weight = check_weights(weight, len(weight), f"'{queries.table.path}'", f"column {place.query_weight}")
    search = Search(
        queries.X,
        documents.X,
        relevance,
        weight=weight,
        query_rows=np.arange(len(queries.X)) if alone else None,
        **_fields(place, queries, documents),
    )
    return Judged(search, **facts)  # type: ignore[arg-type]


def _judged_once(rows: np.ndarray, grades: np.ndarray, names: Sequence[np.ndarray], source: File) -> np.ndarray:
    """Return the first line of each judgement; raise where a document has two grades for one query."""
    first, judgement = np.unique(rows, axis=0, return_index=True, return_inverse=True)[1:]
    other = np.flatnonzero(grades != grades[first][judgement.ravel()])
    if len(other):
        query, document = (column[other[0]] for column in names)
        raise InvalidInputError(
            f"'{source}' gives a document more than one grade for one query in {len(other):,} of {len(rows):,} lines, "
            f"such as document {document} for query {query}. Keep one line of each."
        )
    if repeated := len(rows) - len(first):
        lines = "1 line repeats" if repeated == 1 else f"{repeated:,} lines repeat"
        warnings.warn(f"{lines} an earlier line of '{source}': each counts once.", FirstkWarning, stacklevel=2)
    return np.sort(first)


def read_side(path: File, place: VectorSource, *beside: str | None) -> RowsOfFile:
    """Read vectors; columns that are asked for beside them are no coordinates."""
    names = [part.strip() for name in beside if name is not None for part in name.split(",")]
    table = open_vectors(path, place.vectors, beside=names, nan=place.nan)
    batch = table.read(columns=())
    return RowsOfFile(half_as_single(batch.vectors), None, table, batch.rows)


def _scores(column: np.ndarray, name: str, source: File, graded: bool) -> np.ndarray:
    if column.ndim != 1 or column.dtype.kind not in "fiub":
        what = "Grades of relevance" if graded else "Scores"
        raise InvalidInputError(f"{what} are numbers, and column {name!r} of '{source}' holds {column.dtype}.")
    if graded and (column != np.rint(column.astype(float))).any():
        raise InvalidInputError(f"Grades of relevance are whole numbers, and column '{name}' of '{source}' has others.")
    return column.astype(np.int64) if graded else column


def _field_of(place: VectorSource) -> str | None:
    return None if place.filter is None else place.filter.partition("=")[0].strip()


def _fields(place: VectorSource, queries: RowsOfFile, documents: RowsOfFile) -> dict[str, np.ndarray]:
    """Return what a filter needs: the field's values on both sides."""
    name = _field_of(place)
    if name is None or place.filter is None:
        return {}
    values = column_of(documents.table, name)[documents.rows].astype(str)
    if "=" not in place.filter:
        return {"query_field": column_of(queries.table, name)[queries.rows].astype(str), "document_field": values}
    wanted = place.filter.partition("=")[2].strip()
    if wanted not in values:
        known = ", ".join(map(repr, np.unique(values)[:5].tolist()))
        raise InvalidInputError(
            f"No document of '{place.source}' has {name} = {wanted!r}; its values are {known} and so on."
        )
    # All queries look among the same part: one value, that they have and some rows have.
    return {"query_field": np.ones(len(queries.X), dtype=bool), "document_field": values == wanted}


def _of_vectors(place: VectorSource, source: File, names: Sequence[str], graded: bool) -> Judged:
    """Read pairs of vectors."""
    given = {
        "ids=": place.ids, "by_row=True": place.by_row or None, "queries=": place.queries, "filter=": place.filter,
        "relevance=": place.relevance,
    }  # fmt: skip
    useless = [option for option, value in given.items() if value is not None]
    if useless or graded:
        raise InvalidInputError(
            f"'{source}' holds pairs of vectors, and {', '.join(useless)} goes with pairs that name rows of VECTORS. "
            "Give columns of ids or row numbers, or leave it out."
        )
    left, right = (read_rows(source, vectors=name, nan=place.nan) for name in names[:2])
    kept, at_left, at_right = np.intersect1d(left.rows, right.rows, assume_unique=True, return_indices=True)
    scores = None if len(names) == 2 else _scores(np.asarray(load_columns(source)[names[2]]), names[2], source, False)
    sides = left.X[at_left], right.X[at_right]
    if sides[0].shape != sides[1].shape:
        raise InvalidInputError(
            f"The two sides of the pairs of '{source}' have {sides[0].shape[1]} and {sides[1].shape[1]} numbers."
        )
    kept_scores = None if scores is None else scores[kept]
    name = place_of(str(source)).name
    pairs = Pairs(*sides, kept_scores)
    lefts = distinct_rows(sides[0])[1]
    data = pairs if pairs.scored else as_search(*sides)
    return Judged(data, (name, name), None, right.table.dtype.itemsize, lefts)


SIDES = ("query", "document")


@dataclass(frozen=True)
class RowNames:
    """How judgements or pairs name rows.

    Attributes
    ----------
    ids : str, optional
        The column of ids, or QUERYCOLUMN,DOCUMENTCOLUMN; looked for if not given.
    by_row : bool
        They are row numbers, from 0.
    """

    ids: str | None = None
    by_row: bool = False

    def columns(self) -> tuple[str, str] | None:
        """Return the id columns of queries and of documents, where they were named."""
        if self.ids is None:
            return None
        names = [name.strip() for name in self.ids.split(",") if name.strip()]
        if len(names) not in (1, 2):
            raise InvalidInputError(f"ids= is COLUMN, or QUERYCOLUMN,DOCUMENTCOLUMN. Got '{self.ids}'.")
        return names[0], names[-1]

    def rows(self, columns: Sequence[np.ndarray], tables: Sequence[VectorTable], source: object) -> list[np.ndarray]:
        """Return the file rows that both columns of `source` name, each in its own table."""
        if self.by_row:
            if self.ids is not None:
                raise InvalidInputError("Rows are named by ids= or by numbers (by_row=True), not by both.")
            return [_numbers(*side, source) for side in zip(columns, tables, SIDES, strict=True)]
        named = self.columns()
        if named is None:
            return _settled(columns, tables, source)
        there = [name in load_columns(table.path) for name, table in zip(named, tables, strict=True)]
        if named[0] == named[1] and there[0] != there[1]:
            having, lacking = (tables[there.index(held)].path for held in (True, False))
            raise InvalidInputError(
                f"'{having}' has a column {named[0]!r}, and '{lacking}' has none. If the two files call their ids "
                "differently: ids=QUERYCOLUMN,DOCUMENTCOLUMN."
            )
        return [
            _ids(column, table, name, what, source)
            for column, table, name, what in zip(columns, tables, named, SIDES, strict=True)
        ]


def _settled(columns: Sequence[np.ndarray], tables: Sequence[VectorTable], source: object) -> list[np.ndarray]:
    """Try both readings; take the ids where they alone fit, or where both mean the same."""

    def shown(at: int) -> str:
        return " and ".join(str(column[at]) for column in columns)

    sides = list(zip(columns, tables, SIDES, strict=True))
    found = [_found_ids(column, table, what, source) for column, table, what in sides]
    rows = [ids for _, ids, _ in found if ids is not None]
    wrong = ""
    try:
        numbers = [_numbers(*side, source) for side in sides]
    except InvalidInputError as error:
        numbers, wrong = [], str(error)
    if len(rows) == 2 and (not numbers or all(map(np.array_equal, rows, numbers))):
        return rows
    if len(rows) == 2:  # entries that fit as ids and as row numbers, and mean other rows
        at = int(np.flatnonzero((rows[0] != numbers[0]) | (rows[1] != numbers[1]))[0])
        names = [name for name, _, _ in found]
        places = dict.fromkeys(f"{name!r} of '{table.path}'" for name, table in zip(names, tables, strict=True))
        raise InvalidInputError(
            f"'{source}' can be read in two ways. Its entry {at} names {shown(at)}: as ids in {' and '.join(places)}, "
            f"rows {rows[0][at]} and {rows[1][at]}; as row numbers, rows {numbers[0][at]} and {numbers[1][at]}. Say "
            f"ids='{','.join(dict.fromkeys(names))}' or by_row=True."
        )
    others = list(zip(columns, reversed(tables), SIDES, strict=True))
    if not rows and tables[0] is not tables[1] and all(_found_ids(*one, source)[1] is not None for one in others):
        raise InvalidInputError(
            f"The queries of '{source}' are in '{tables[1].path}', and its documents in '{tables[0].path}'. Swap the "
            f"two files, or the two columns of '{source}'."
        )
    reasons = [why for _, ids, why in found if ids is None]
    if numbers:
        raise InvalidInputError(
            f"'{source}' names rows by numbers such as {shown(0)}: ids or row numbers? "
            f"{'; '.join(dict.fromkeys(reasons))}. Say by_row=True if they are row numbers (from 0), or name the "
            "column that holds such ids with ids=."
        )
    read_as_numbers = f" As row numbers: {wrong}" if all(column.dtype.kind in "iu" for column in columns) else ""
    elsewhere = " Queries of another file: queries=." if tables[0] is tables[1] and found[0][1] is None else ""
    raise InvalidInputError(
        f"{reasons[0][0].upper()}{reasons[0][1:]}. Name the column that holds such ids with ids=.{elsewhere}"
        f"{read_as_numbers}"
    )


def _found_ids(column: np.ndarray, table: VectorTable, what: str, source: object) -> tuple[str, np.ndarray | None, str]:
    """Return the id column, by the usual names, with the rows that its ids name; or why there is none."""
    held, found = load_columns(table.path), dict[str, np.ndarray]()
    why = f"'{source}' names a {what} by {str(column[:1].tolist()[0])!r}, and '{table.path}' has no column of ids"
    for name in (name for name in held if usual(name) in ID_NAMES and name not in table.members):
        try:
            found[name] = _ids(column, table, name, what, source, held)
        except InvalidInputError as error:
            why = f"by its column {name!r}, {str(error).rstrip('.')}"
    if not found:
        return "", None, why
    first, *others = found
    if not all(np.array_equal(found[first], found[other]) for other in others):
        raise InvalidInputError(
            f"The {what}s of '{source}' are in {' and '.join(map(repr, found))} of '{table.path}', in other rows. Name "
            f"the one that is meant with ids='{first}'."
        )
    return first, found[first], ""


def usual(name: str) -> str:
    """Return a column's name as it is compared with usual ones.

    Examples
    --------
    >>> usual("Corpus-ID")
    'corpus_id'
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def column_of(table: VectorTable, name: str, held: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
    """Return a column with an entry for every row of a table's file, those included that have no vector."""
    held = load_columns(table.path) if held is None else held
    if name not in held:
        raise missing_column(table.path, name, list(held))
    column = np.asarray(held[name])
    if column.ndim != 1 or len(column) != table.rows:
        raise InvalidInputError(
            f"Column {name!r} of '{table.path}' has shape {column.shape}, and there are {table.rows} vectors: give one "
            "entry for each."
        )
    return column


def _ids(
    column: np.ndarray,
    table: VectorTable,
    name: str,
    what: str,
    source: object,
    held: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    return rows_of_ids(column, column_of(table, name, held), what, f"'{source}'", f"'{table.path}'")


def _numbers(column: np.ndarray, table: VectorTable, what: str, source: object) -> np.ndarray:
    """Return row numbers, checked."""
    numbers = column
    if column.dtype.kind == "f" and np.isfinite(column).all() and (column == np.rint(column)).all():
        numbers = column.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise InvalidInputError(
            f"'{source}' names a {what} by {str(column[0])!r}, which is not a row number. Say which column of "
            f"'{table.path}' holds such ids with ids=."
        )
    outside = np.flatnonzero((numbers < 0) | (numbers >= table.rows))
    if len(outside):
        raise InvalidInputError(
            f"'{source}' names {what} row {numbers[outside[0]]} (entry {outside[0]}), and '{table.path}' has rows 0 to "
            f"{table.rows - 1}; {len(np.unique(numbers[outside])):,} are missing in all."
        )
    return numbers.astype(np.int64)
