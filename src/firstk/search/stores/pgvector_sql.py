"""The SQL of pgvector without a connection: an index on the prefix of a column of codes, and a search that reranks.

`subvector` cuts a code in the database, so the short code is not stored twice: an expression index holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firstk._base.checks import bad_parameter, check_choice, check_count
from firstk.search.stores import filters

__all__ = ["statements"]

# By the metric: pgvector's operator, the name in its operator classes, and a score in SQL from a distance.
OPERATORS = {
    "cosine": ("<=>", "cosine", "1 - ({})"),
    "inner_product": ("<#>", "ip", "-({})"),
    "l2": ("<->", "l2", "{}"),
}
# By the precision of the index: the type of what is indexed, and the longest that an HNSW index takes.
INDEXED = {"float32": ("vector", 2000), "float16": ("halfvec", 4000), "binary": ("bit", 64000)}
LONGEST = 16000


def quoted(name: str) -> str:
    """Return a name of a table or column for SQL; a dot separates a schema from a table."""
    return ".".join(map(filters.quoted, name.split(".")))


@dataclass(frozen=True)
class Statements:
    """The SQL of a table of codes: what to run once, and what to run for each query.

    Attributes
    ----------
    index : str
        Creates the index of the short prefix.
    settings : tuple of str
        Run in the transaction of a search: how far the graph is searched.
    search : str
        Takes the full code of a query as ``%(query)s``; gives ids, scores and the other columns, best first.
    """

    index: str
    settings: tuple[str, ...]
    search: str

    def __str__(self) -> str:
        return ";\n\n".join((self.index, "BEGIN", *self.settings, self.search, "COMMIT")) + ";"


def statements(
    table: str,
    short: int,
    full: int | None = None,
    *,
    code: str = "code",
    key: str = "id",
    columns: Sequence[str] = (),
    metric: str = "cosine",
    precision: str = "float32",
    stored: str = "float32",
    limit: int = 10,
    shortlist: int = 100,
    where: str = "",
) -> Statements:
    """Return the SQL for a table that exists: an index on the first `short` coordinates, and a search with reranking.

    Parameters
    ----------
    table : str
        With its schema, if need be.
    short : int
        Length of the indexed prefix.
    full : int, optional
        Width of the column of codes; None ranks by the short prefix alone.
    code, key : str
        Columns of codes (type ``vector``) and of ids.
    columns : sequence of str
        Further columns to return.
    metric : {"cosine", "inner_product", "l2"}
        Cosine for codes of unit norm: a prefix of a unit vector has no unit norm.
    precision : {"float32", "float16", "binary"}
        Of the index. "binary" indexes signs; give it a longer shortlist.
    stored : {"float32", "float16", "binary"}
        Type of the column: ``vector``, or of codes of one length ``halfvec`` or ``bit``, which are indexed as they are.
    limit, shortlist : int
    where : str
        A condition in SQL.

    Examples
    --------
    >>> print(statements("documents", 32, 384, limit=10, shortlist=100).search)
    SELECT "id", 1 - ("code" <=> %(query)s::vector(384)) AS score
    FROM (
        SELECT "id", "code" FROM "documents"
        ORDER BY subvector("code", 1, 32)::vector(32) <=> subvector(%(query)s::vector(384), 1, 32)::vector(32)
        LIMIT 100
    ) AS shortlist
    ORDER BY "code" <=> %(query)s::vector(384), "id"
    LIMIT 10
    """
    owner = "pgvector.statements"
    short = check_count(short, "short", owner, most=LONGEST)
    width = check_count(short if full is None else full, "full", owner, most=LONGEST)
    sign, classes, score = OPERATORS[check_choice(metric, tuple(OPERATORS), "metric", owner)]
    check_choice(precision, tuple(INDEXED), "precision", owner)
    limit, shortlist = check_count(limit, "limit", owner), check_count(shortlist, "shortlist", owner)
    if width < short:
        raise bad_parameter("full", owner, f"None or an int of at least {short} (the length of 'short')", full)
    if (full is not None or precision == "binary") and shortlist < limit:
        raise bad_parameter("shortlist", owner, f"an int of at least {limit} (the limit)", shortlist)
    place, column, ident = quoted(table), quoted(code), quoted(key)
    given = f"%(query)s::vector({width})"
    wide = shortlist if full is not None or precision == "binary" else limit
    if stored != "float32":
        wide, precision = max(100, 4 * limit), stored
        held, asked = column, _prefix(given, short, width, stored)
    else:
        held, asked = _prefix(column, short, width, precision), _prefix(given, short, width, precision)
    near = again = f"{held} {'<~>' if precision == 'binary' else sign} {asked}"
    if stored == "float32":
        again = f"{column} {sign} {given}"
    elif stored == "binary":
        score = f"1 - 2 * ({{}}) / {short}.0"  # the cosine of signs
    family = "bit_hamming_ops" if precision == "binary" else f"{INDEXED[precision][0]}_{classes}_ops"
    name = quoted(f"{table.rpartition('.')[2][:40]}_{code[:12]}_{short}_{precision}")
    index = f"CREATE INDEX IF NOT EXISTS {name} ON {place} USING hnsw (({held}) {family})"
    named = ", ".join([ident, column, *map(quoted, columns)])
    beside = "".join(f", {quoted(one)}" for one in columns)
    condition = f"\n    WHERE {where}" if where else ""
    # The graph is searched as far as the shortlist, and further where a filter leaves too few.
    settings = (
        f"SET LOCAL hnsw.ef_search = {min(1000, max(40, wide))}",
        "SET LOCAL hnsw.iterative_scan = 'relaxed_order'",
    )
    search = (
        f"SELECT {ident}, {score.format(again)} AS score{beside}\n"
        f"FROM (\n    SELECT {named} FROM {place}{condition}\n"
        f"    ORDER BY {near}\n    LIMIT {wide}\n) AS shortlist\n"
        f"ORDER BY {again}, {ident}\nLIMIT {limit}"
    )
    return Statements(index, settings, search)


def _prefix(code: str, short: int, width: int, precision: str) -> str:
    """Return the first coordinates of a code as they are indexed."""
    cut = code if short == width else f"subvector({code}, 1, {short})"
    if precision == "binary":
        return f"binary_quantize({cut})::bit({short})"
    return f"{cut}::{INDEXED[precision][0]}({short})"
