"""Vectors in a table of LanceDB: a column of lists of floats, all of one length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, chosen_vectors, possible_ids, stored

if TYPE_CHECKING:
    from firstk.search.stores.lancedb import LanceDB


def open_rows(engine: LanceDB, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a table; ids are in its column 'id', or in one that is named; all other columns are the payload."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = engine.connection.open_table(engine.table)
    schema, names = table.schema, list(table.schema.names)
    possible = [
        one.name
        for one in schema
        if (pa.types.is_fixed_size_list(one.type) or pa.types.is_list(one.type))
        and pa.types.is_floating(one.type.value_type)
    ]
    vector = chosen_vectors(engine.place, vectors, possible, names)
    key = chosen(engine.place, "ids", "ids=... (--id)", ids, possible_ids([], names), names)
    others = [name for name in names if name not in (vector, key)]
    first = table.search().limit(1).to_arrow()[vector].to_pylist()
    width = len(first[0] or ()) if first else 0

    def read(size: int) -> Iterator[StoredRows]:
        for batch in table.search().limit(max(1, table.count_rows())).to_batches(size):
            for start in range(0, batch.num_rows, size):
                part = batch.slice(start, size)
                # Lists that are missing, or of another length, would move the numbers of later rows.
                if not pc.all(pc.equal(pc.fill_null(pc.list_value_length(part[vector]), -1), width)).as_py():
                    raise InvalidInputError(
                        f"{engine.place} has rows without a vector in column {vector!r}, or with one that has not "
                        f"{width} numbers like the first. Delete them, or name another column (--vectors)."
                    )
                codes = part[vector].flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
                payloads = part.select(others).to_pylist() if others else [{}] * len(part)
                yield stored(part[key].to_pylist(), codes, payloads)

    return ForeignRows(int(table.count_rows()), int(width), vector, read)
