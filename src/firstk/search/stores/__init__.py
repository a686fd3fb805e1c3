"""Vector stores behind one interface: a short prefix is indexed, a longer one reranks, and rows have ids and payloads.

Needs the extra "stores". `contract` is the package on one page; a store is one file and one line in `STORES`. Search
without a store lives in `search`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import Engine, Neighbors, StoredRows, StoreLayout
from firstk.search.stores.prefix_store import PrefixStore, push

# The class of each store, by the name of its module. Tests want its address (`benchmarks.stores.FILES`), and a table
# that another program filled (`tests/search/moving/test_named_columns`).
STORES = {
    "chroma": "Chroma",
    "duckdb": "DuckDB",
    "faiss": "Faiss",
    "lancedb": "LanceDB",
    "milvus": "Milvus",
    "pgvector": "Pgvector",
    "qdrant": "Qdrant",
    "sqlite_vec": "SqliteVec",
    "usearch": "USearch",
}
# How an address begins, where it is not the name of the module.
_SCHEMES = {"postgresql": "pgvector", "postgres": "pgvector", "sqlite": "sqlite_vec", "sqlite-vec": "sqlite_vec"}

__all__ = [
    "STORES",
    "Engine",
    "StoreLayout",
    "Neighbors",
    "PrefixStore",
    "StoredRows",
    "check_store",
    "connect",
    "engine_class",
    "is_address",
    "place_and_name",
    "push",
    *STORES.values(),
]


def __getattr__(name: str) -> Any:
    for module, kind in STORES.items():
        if kind == name:
            return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_address(text: str) -> bool:
    """Tell whether a text is the address of a store, as `connect` takes it, and not the name of a file."""
    head = text.partition(":")[0].partition("+")[0]
    return ":" in text and (head in STORES or head in _SCHEMES)


def connect(address: str, **settings: Any) -> Engine:
    """Return the engine of an address ``scheme:place#name``.

    Parameters
    ----------
    address : str
        Such as ``postgresql://me@host/search#documents``, ``sqlite:codes.db#documents`` or
        ``qdrant+http://localhost:6333#documents``. A password is better left to the environment.
    **settings
        Of the engine.
    """
    scheme, _, rest = address.partition(":") if isinstance(address, str) else (repr(address), "", "")
    place, name = place_and_name(rest)
    head, _, protocol = scheme.partition("+")
    kind = engine_class(address)
    if kind.name == "pgvector":
        place = f"{'postgresql' if head == 'pgvector' else scheme}:{place}"
    elif protocol:
        place = f"{protocol}:{place}"
    return kind.connect(place, *([name] if name else []), **settings)


def check_store(address: str) -> None:
    """Raise an error where the file or folder of a local store is not there; connecting would create it."""
    place, _ = place_and_name(address.partition(":")[2])
    served = ":" in place or engine_class(address).name == "pgvector"  # by a server, or ":memory:"
    if not served and not Path(place).exists():
        raise InvalidInputError(f"There is no store at '{place}'. Check the name and the folder.")


def place_and_name(text: str) -> tuple[str, str]:
    """Split PLACE#NAME; raise an error where the sign belongs to a password."""
    place, _, name = text.rpartition("#") if "#" in text else (text, "", "")
    if "//" in place and "@" in name:
        raise InvalidInputError(
            "An address of a store is SCHEME:PLACE#NAME, and what follows its last '#' holds an '@'. Write a '#' in a "
            "password as %23, or leave the password to the environment."
        )
    return place, name


def engine_class(address: str) -> Any:
    """Return the class of the engine of an address; raise an error for what is none."""
    scheme, colon, rest = address.partition(":") if isinstance(address, str) else (repr(address), "", "")
    head = scheme.partition("+")[0]
    module = _SCHEMES.get(head, head)
    if not colon or module not in STORES or not place_and_name(rest)[0]:
        known = ", ".join(sorted({*STORES, *_SCHEMES}))
        raise InvalidInputError(
            f"An address of a store is SCHEME:PLACE#NAME, and SCHEME one of {known}. Got one that begins with "
            f"'{scheme[:20]}'."
        )
    return getattr(importlib.import_module(f"{__name__}.{module}"), STORES[module])
