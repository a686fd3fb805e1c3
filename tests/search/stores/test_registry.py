"""Stores by name and address; packages are imported when they are used, and an error names what is missing."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from firstk.data.stamp import CodeStamp
from firstk.exceptions import InvalidInputError, MissingExtraError
from firstk.search import stores
from firstk.search.stores import STORES, PrefixStore, connect
from firstk.search.stores.contract import Engine, StoreLayout
from fixtures.store_addresses import PACKAGES

# The package of each store that is imported first.
NEEDS = {store: needed[0] for store, needed in PACKAGES.items() if needed}


def test_every_store_follows_the_protocol(store):
    kind = getattr(stores, STORES[store])
    parts = [part for part in (*Engine.__annotations__, *vars(Engine)) if not part.startswith("_")]
    assert not [part for part in parts if not hasattr(kind, part)]
    assert kind.name == store
    assert set(kind.metrics) <= {"cosine", "inner_product", "l2"}


def test_importing_stores_imports_no_product():
    code = (
        "import sys, firstk.search.stores as s\nfrom firstk.search.stores import shortlists\n"
        "[getattr(s, kind) for kind in s.STORES.values()]\n"
        f"print(*[name for name in {sorted(NEEDS.values())} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("store", sorted(NEEDS))
def test_a_missing_package_is_named_with_its_extra(store, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == NEEDS[store]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, NEEDS[store], None)
    with pytest.raises(MissingExtraError, match=rf"'{NEEDS[store]}'.*firstk\[stores\]"):
        getattr(stores, STORES[store])("anywhere")


def test_milvus_lite_is_named_where_a_file_needs_it(monkeypatch, tmp_path):
    pytest.importorskip("pymilvus")
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    with pytest.raises(MissingExtraError, match=r"milvus_lite.*firstk\[stores\]"):
        connect(f"milvus:{tmp_path}/a.db#documents")


@pytest.mark.parametrize(
    "wrong", [None, 5, "documents", "oracle:db#t", "sqlite:", "sqlite:#t", "http://host#documents"]
)
def test_addresses_that_lead_nowhere_raise(wrong):
    with pytest.raises(InvalidInputError, match="SCHEME:PLACE#NAME"):
        connect(wrong)


@pytest.mark.parametrize("scheme", ["qdrant", "milvus", "chroma"])
def test_a_server_that_is_not_there_raises_without_its_key(scheme, coder, monkeypatch):
    pytest.importorskip({"qdrant": "qdrant_client", "milvus": "pymilvus", "chroma": "chromadb"}[scheme])
    for name in ("QDRANT_API_KEY", "MILVUS_TOKEN", "CHROMA_TOKEN"):
        monkeypatch.setenv(name, "s3cret:word")

    def opened():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a key that is sent without encryption
            return PrefixStore.open(connect(f"{scheme}+http://127.0.0.1:9#documents"), coder)

    with pytest.raises(InvalidInputError) as raised:
        opened()
    assert "s3cret" not in str(raised.value)


def test_unknown_names_are_attribute_errors():
    assert not hasattr(stores, "Oracle")


def test_a_record_that_was_damaged_raises():
    layout = StoreLayout(4, 8, "cosine", True, "int", CodeStamp("abc", "def", source="minilm"))
    assert StoreLayout.read(layout.record(), "The store") == layout
    for wrong in (
        "",
        "{}",
        "[1]",
        layout.record().replace("4", "-4"),
        layout.record().replace("store 1", "store 2"),
        layout.record().replace('"abc"', "3"),
    ):
        with pytest.raises(InvalidInputError, match="The store has a record"):
            StoreLayout.read(wrong, "The store")


def test_an_address_is_no_engine(coder, vectors):
    for call in (
        lambda: stores.push(coder, vectors[0], "sqlite:codes.db", 4),
        lambda: PrefixStore.create("sqlite:codes.db", coder, 4),
        lambda: PrefixStore.open("sqlite:codes.db", coder),
    ):
        with pytest.raises(InvalidInputError, match=r"an engine, such as Faiss\(folder\) or connect\(address\)"):
            call()
