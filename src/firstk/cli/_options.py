"""The options that several commands share: one definition each, so that a name means the same in every command.

Here is also what they are read into: where vectors and judgements are, and the encoder that ``--set`` describes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk.data.remote import is_there
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.advice.inputs import VectorSource
    from firstk.estimator.prefix_encoder import PrefixEncoder

# Numbers of rows as people write them: 10M, 1.5B, 200k, 10_000_000, 10,000,000.
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
_COUNT = re.compile(r"([0-9]+|[0-9]{1,3}(?:[,_ ][0-9]{3})+)(\.[0-9]+)?([kmbg]?)", re.IGNORECASE)
_LARGEST = 10**15


def read_count(text: str | int) -> int:
    """Read a number of rows; raise typer.BadParameter for anything else.

    Examples
    --------
    >>> read_count("10M"), read_count("1.5B"), read_count("200k"), read_count("10,000,000")
    (10000000, 1500000000, 200000, 10000000)
    """
    found = _COUNT.fullmatch(str(text).strip())
    # Without a unit there is no fraction: in half of the world 10.000 is ten thousand.
    if found and (found[3] or not found[2]):
        count = Decimal(re.sub("[,_ ]", "", found[1]) + (found[2] or "")) * _UNITS[found[3].lower()]
        if count == int(count) and 1 <= count <= _LARGEST:
            return int(count)
    raise typer.BadParameter(f"{text!r} is not a number of rows. Write 10M, 1.5B, 200k, 10_000_000 or 10,000,000.")


VectorsArgument = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS",
        help="File or folder of vectors, or 'part-*.parquet' in quotes. If several columns could be the vectors: "
        "FILE:COLUMN.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label",
        "--target",
        help="Labels or targets: columns, or FILE[:COLUMN].",
        metavar="COLUMN",
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="Pairs, by ids or as vectors: [FILE:]LEFT,RIGHT[,SCORE].",
        metavar="COLUMNS",
    ),
]
QueriesOption = Annotated[
    str | None,
    typer.Option(
        "--queries",
        help="Queries to search with; FILE:COLUMN weights them.",
        metavar="FILE",
    ),
]
RelevanceOption = Annotated[
    str | None,
    typer.Option(
        "--relevance",
        help="Judgements: FILE[:QUERY,DOCUMENT[,GRADE]].",
        metavar="FILE",
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Ids, if not called id: [QUERY,]DOCUMENT, or :row.",
        metavar="COLUMN",
    ),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Only documents that share FIELD, or FIELD=VALUE.",
        metavar="FIELD",
    ),
]
NanOption = Annotated[
    str,
    typer.Option(
        "--nan",
        help="Vectors with NaN or infinity.",
        metavar="refuse|drop",
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option(
        "--rows",
        parser=read_count,
        metavar="COUNT",
        help="How many vectors you will store, such as 10M or 200k: sizes and savings are for this number.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print only one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file or model.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Print everything, not only the answer.")]
KeepOption = Annotated[
    float | None, typer.Option("--keep", metavar="SHARE", help="Choose the cheapest code that keeps this share: 0.99.")
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="NAME",
        help="Choose what this store holds: pgvector, ...",
    ),
]
BytesPerVectorOption = Annotated[
    int | None, typer.Option("--bytes-per-vector", min=1, metavar="N", help="Choose the best code within N bytes.")
]


def file_and_column(spec: str) -> tuple[str, str | None]:
    """Return both parts of FILE:COLUMN, and no column where a place alone is named; places may have colons.

    Examples
    --------
    >>> file_and_column("docs.parquet:embedding"), file_and_column("sqlite:codes.db#docs")
    (('docs.parquet', 'embedding'), ('sqlite:codes.db#docs', None))
    """
    file, _, column = str(spec).rpartition(":")
    if not file or not column or set(column) & set("/\\#") or is_there(spec):
        return spec, None
    # Behind the name of a store is a folder.
    return (file, column) if Path(file).suffix or set(file) & set("*#") or is_there(file) else (spec, None)


def place_of_options(
    source: str,
    label: str | None = None,
    pairs: str | None = None,
    nan: str = "refuse",
    queries: str | None = None,
    relevance: str | None = None,
    ids: str | None = None,
    filter: str | None = None,
) -> VectorSource:
    """Return where vectors, labels and judgements are, as the options of a command name it."""
    from firstk.advice.inputs import VectorSource

    source, vectors = file_and_column(source)
    column, file = (None, label) if is_label_file(label) else (label, None)
    weight = None
    if queries is not None and not is_there(queries) and ":" in queries:
        queries, _, weight = queries.rpartition(":")
    by_row = ids == ":row"
    return VectorSource(
        source, vectors, column, file, pairs, nan, queries, relevance, None if by_row else ids, by_row, filter, weight
    )


def is_label_file(label: str | None) -> bool:
    """Tell whether labels are in a file of their own: FILE or FILE:COLUMN, and the file is there."""
    return label is not None and (is_there(label) or (":" in label and is_there(label.rpartition(":")[0])))


# -- parameters as options ----------------------------------------------------------------------------------------

# Options of the command that runs, by the names of its parameters.
_KNOWN: dict[str, str] = {}
# Parameters of the library that are a part of what another option takes.
_WITHIN = {
    "labels": ("label", ""),
    "by_row": ("ids", " :row"),
    "query_weight": ("queries", " FILE:WEIGHT"),
    "reference_labels": ("reference", " FILE:LABEL"),
}
# A call is Python, and left as it is.
_PARAMETER = re.compile(
    r"\w\((?:[^()]|\([^()]*\))*\)|(?<![\w.])([a-z_]+)=(True\b|\.\.\.|'[^'\n]*'|[\w:/.*\[\],-]*[\w*\]])?"
)
_CHECKED = re.compile(r"^The '(\w+)' parameter of [\w.]+ must")


def know_options(params: Iterable[Any]) -> None:
    """Remember the options of the command that runs."""
    _KNOWN.clear()
    for one in params:
        _KNOWN[one.name] = next((word for word in one.opts if word.startswith("-")), one.metavar or one.name.upper())
        if one.name in ("source", "origin", "place", "old"):
            _KNOWN["vectors"] = f"{_KNOWN[one.name]}:"


def in_options(text: str) -> str:
    """Return a message of the library in the words of the command line.

    The library names parameters: ``label=``, ``nan='drop'``, ``vectors='x'``. Those of the command that runs become
    its options: ``--label``, ``--nan drop``, ``VECTORS:x``.
    """

    def option(found: re.Match[str]) -> str:
        name, more = _WITHIN.get(found[1], (found[1], ""))
        if name not in _KNOWN:
            return found[0]
        value = found[2] or ""
        value = "" if more or value in ("True", "...") else value if value == "''" else value.strip("'")
        if name == "vectors":
            return f"{_KNOWN[name]}{value or 'COLUMN'}"
        return f"{_KNOWN[name]}{more}{' ' if value else ''}{value}"

    checked = _CHECKED.match(text)
    if checked is not None and checked[1] in _KNOWN:
        text = f"{_KNOWN[checked[1]]} must{text[checked.end() :]}"
    return _PARAMETER.sub(option, text)


# -- settings by name: --set NAME=VALUE ---------------------------------------------------------------------------

# Parameters of PrefixEncoder that may be set by name, and those of its `save`; others have options of their own.
NAMES = ("ordering", "solver", "network", "init", "device")
_SHAPE = "NAME=VALUE, such as objective.shrinkage=auto, ordering=sparse_prefix:8,16,32 or network=mlp:256,256"


def encoder_of(objective: str, given: Sequence[str], **others: Any) -> PrefixEncoder:
    """Return the encoder that the options describe: an objective by name, and settings as ``--set`` takes them."""
    from firstk import objectives
    from firstk._base.checks import check_choice
    from firstk.estimator.prefix_encoder import PrefixEncoder

    check_choice(objective, objectives.PUBLIC, "--objective", "firstk fit")
    named, nested = settings_of(given)
    encoder = PrefixEncoder(objective=objectives.PUBLIC[objective](), **named, **others)
    known = encoder.get_params()
    for name, value in nested.items():
        if name not in known:
            member, _, setting = name.partition("__")
            own = sorted(one.partition("__")[2] for one in known if one.startswith(f"{member}__"))
            have = f"It has {', '.join(own)}." if own else "It has none."
            raise InvalidInputError(f"--set {member}.{setting}: '{setting}' is not a setting of this {member}. {have}")
        encoder.set_params(**{name: value})
    return encoder


def save_settings(given: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the settings of the encoder as they were given, and those of how it is saved, by name."""
    others = [word for word in given if not word.startswith("save.")]
    saved: dict[str, Any] = {}
    for word in given:
        name, _, text = word.removeprefix("save.").partition("=")
        if word not in others:
            saved[name.strip()] = text.strip() if name.strip() == "source_model" else _value(name, text.strip())
    if set(saved) - {"moments", "source_model"} or saved.get("moments", True) not in (True, False):
        raise InvalidInputError(f"--set takes save.moments=true and save.source_model=NAME. Got {', '.join(given)}.")
    return others, saved


def settings_of(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters of the encoder by name, and nested ones by the names that ``set_params`` takes."""
    named: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        member, dot, setting = name.strip().partition(".")
        if not equals or member not in ("objective", *NAMES) or (member == "objective") > bool(dot):
            raise InvalidInputError(f"--set takes {_SHAPE}. Got '{word}'.")
        if dot:
            nested[f"{member}__{setting}"] = _value(setting, text.strip())
        else:
            named[member] = _member(member, text.strip())
    return named, nested


def _member(name: str, text: str) -> Any:
    """Return an ordering or a network by its name, with what follows a colon; others as they are."""
    kind, _, numbers = text.partition(":")
    if name == "ordering" and kind == "sparse_prefix":
        from firstk.orderings import SparsePrefix

        return SparsePrefix(_whole_numbers(numbers, name, text))
    if name == "network" and kind == "mlp" and numbers:
        from firstk.encoder.network import MLP

        return MLP(hidden=tuple(_whole_numbers(numbers, name, text)))
    return text


def _value(setting: str, text: str) -> Any:
    """Return the value of a setting: as JSON where it is some, none as None, a noise by its name, else as text."""
    if setting == "noise":
        from firstk.objectives import GaussianNoise, Masking

        kinds = {"masking": Masking, "gaussian": GaussianNoise}
        name, _, value = text.partition(":")
        if name not in kinds:
            raise InvalidInputError(f"A noise is masking:SHARE_KEPT or gaussian:SIGMA. Got '{text}'.")
        return kinds[name](*([] if not value else [_value("", value)]))
    if text in ("none", "None"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _whole_numbers(text: str, name: str, word: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() and int(part) > 0 for part in parts):
        raise InvalidInputError(f"--set {name} takes whole numbers with commas after the colon. Got '{word}'.")
    return [int(part) for part in parts]
