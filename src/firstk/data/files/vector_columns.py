"""Which columns of a table are the vectors: found when there is one answer, else asked for.

A list column of numbers is a vector. A table without one is a plain table: numbered columns that share a name
(``x0, x1, ...``) are a vector, and otherwise all columns of numbers together, but for those that name rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from firstk.data.files.contract import Wanted, unreadable
from firstk.exceptions import InvalidInputError

# Usual names of columns that name rows, in lower case and with underscores.
ID_NAMES = frozenset(
    (
        *("id", "_id", "ids", "uid", "uuid", "key", "doc_id", "docid", "did", "doc_ids", "document_id", "document_ids"),
        *("corpus_id", "passage_id", "pid", "text_id", "query_id", "queryid", "query_ids", "qid", "question_id"),
    )
)
# In a plain table, columns of these names number, name or split the rows; taken as coordinates they would be nonsense.
_NO_COORDINATES = {
    *ID_NAMES,
    *("idx", "index", "row", "row_id", "rowid", "", "unnamed: 0", "__index_level_0__"),
    *("label", "labels", "target", "targets", "class", "classes", "y", "score", "weight", "part", "split", "fold"),
}
_NUMBERED = re.compile(r"(.*?)[_.\- ]?([0-9]{1,18})$")
# What the vectors of a format without column names, or of unrelated columns, are called.
PLAIN_NAME = "vectors"


@dataclass(frozen=True)
class ChosenColumns:
    """The columns that make up the vectors, and the name that they have together."""

    name: str
    members: tuple[str, ...]
    spread: bool


def choose(path: object, kinds: Mapping[str, str], wanted: Wanted) -> ChosenColumns:
    """Choose the vector column.

    Parameters
    ----------
    path : path
        For error messages.
    kinds : mapping of str to str
        Of each column: "vector" (lists of floats), "list" (lists of whole numbers, which may be tokens), "bytes"
        (strings of one length, which are taken only where they are named), "number" or "other".
    wanted : Wanted
    """
    if wanted.vectors is not None:
        named = _named(path, kinds, wanted.vectors)
        for name in set(named.members) & set(wanted.beside):
            raise both(path, name)
        return named
    for kind in ("vector", "list"):
        found = [name for name, is_a in kinds.items() if is_a == kind and name not in wanted.beside]
        if len(found) == 1:
            return ChosenColumns(found[0], (found[0],), spread=False)
        if found:
            raise several(path, found)
    for name in wanted.beside:
        if kinds.get(name) == "vector":
            raise both(path, name)
    return _plain(path, kinds, wanted)


def both(path: object, name: str) -> InvalidInputError:
    """Build the error for vectors that are named as labels."""
    return InvalidInputError(
        f"Column {name!r} of '{path}' is the vectors, and labels cannot be the vectors. Name another column by label=."
    )


def several(path: object, found: Sequence[str]) -> InvalidInputError:
    """Build the error for more than one candidate."""
    names = ", ".join(repr(name) for name in found)
    return InvalidInputError(
        f"'{path}' has {len(found)} columns that could be the vectors: {names}. Name one: vectors={found[0]!r}."
    )


def check_names(path: object, names: Sequence[str]) -> None:
    """Raise InvalidInputError for two columns of one name."""
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise unreadable(path, f"it has two columns called {doubled[0]!r}", "Rename one")


def missing_column(path: object, name: str, there: Sequence[str]) -> InvalidInputError:
    """Build the error for a column that is not there."""
    shown = ", ".join(repr(other) for other in list(there)[:20]) + (", ..." if len(there) > 20 else "")
    return InvalidInputError(f"'{path}' has no column {name!r}. It has: {shown or 'none'}.")


def _plain(path: object, kinds: Mapping[str, str], wanted: Wanted) -> ChosenColumns:
    numbers = [name for name, kind in kinds.items() if kind == "number" and name not in wanted.beside]
    coordinates = [name for name in numbers if name.strip().lower().replace("-", "_") not in _NO_COORDINATES]
    families = _families(coordinates)
    if 2 * sum(map(len, families.values())) <= len(coordinates):
        families = {}  # a few numbered columns among many others are no vector of their own
    if len(families) == 1:
        ((stem, members),) = families.items()
        return ChosenColumns(stem or PLAIN_NAME, members, spread=True)
    if families:
        raise several(path, list(families))
    if not coordinates:
        shown = ", ".join(map(repr, list(kinds)[:20])) or "it has no columns"
        raise unreadable(
            path,
            f"none of its columns is a vector or a coordinate ({shown})",
            "A vector column holds lists of numbers; a plain table holds a column of numbers a coordinate",
        )
    return ChosenColumns(PLAIN_NAME, tuple(coordinates), spread=True)


def _named(path: object, kinds: Mapping[str, str], asked: str) -> ChosenColumns:
    """Resolve a name: of a column, of a numbered family, a pattern, or a comma-separated list of columns."""
    members: tuple[str, ...]
    if asked in kinds:
        members, name = (asked,), asked
    elif asked in (families := _families([name for name, kind in kinds.items() if kind == "number"])):
        members, name = families[asked], asked
    else:
        members, name = _listed(path, kinds, asked), PLAIN_NAME
    text = [member for member in members if kinds[member] == "other"]
    if text:
        raise unreadable(path, f"column {text[0]!r} does not hold numbers", "Name a column of vectors")
    spread = kinds[members[0]] == "number"
    if len(members) > 1 and any(kinds[member] != "number" for member in members):
        raise unreadable(path, f"{asked!r} names several columns, and not each is a coordinate", "Name one column")
    return ChosenColumns(name, members, spread)


def _listed(path: object, kinds: Mapping[str, str], asked: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in asked.split(","):
        hits = [name for name in kinds if name == part.strip() or fnmatchcase(name, part.strip())]
        if not hits:
            raise missing_column(path, part.strip(), list(kinds))
        found.update(dict.fromkeys(hits))
    return tuple(found)


def _families(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return columns that share a name and are numbered 0, 1, 2, ... or 1, 2, 3, ..., in the order of their numbers."""
    numbered: dict[str, dict[int, str]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault(match[1], {})[int(match[2])] = name
    return {
        stem: tuple(name for _, name in sorted(family.items()))
        for stem, family in numbered.items()
        if len(family) > 1 and sorted(family) in (list(range(len(family))), list(range(1, len(family) + 1)))
    }
