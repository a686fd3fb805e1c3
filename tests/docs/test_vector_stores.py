"""The table of stores is that of the code, with the versions that the tests run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from firstk.search.stores import STORES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "vector-stores.md").read_text("utf-8")


def rows():
    table = re.split(r"^## Stores$", PAGE, flags=re.MULTILINE)[1].split("Servers of")[0]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    return [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]


def test_every_store_has_a_row_and_a_section():
    assert sorted(row["class"] for row in rows() if row["class"] != "-") == sorted(STORES.values())
    for row in rows():
        assert row["class"] == "-" or f"{row['class']}(" in PAGE, "a block that uses it"


def test_versions_are_the_pins():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    for row in rows():
        if row["class"] == "-":
            assert row["run by the tests with"].startswith("not run")
            continue
        named = re.findall(r"([a-z-]+) ([0-9.]+)", row["run by the tests with"])
        pinned = {name: number.rstrip(".") for name, number in named if name in pins and name != "pgvector"}
        assert pinned, row
        assert pinned == {name: pins[name] for name in pinned}, row


def test_metrics_are_those_of_the_engines():
    from firstk.search import stores

    for row in rows():
        if row["class"] != "-":
            metrics = ("cosine", "inner_product", "l2") if row["metrics"] == "all" else row["metrics"].split(", ")
            assert tuple(metrics) == getattr(stores, row["class"]).metrics


@pytest.mark.wings
def test_the_clients_of_elasticsearch_know_every_setting():
    """The text was not run on a server, but its names are parameters of the client's own methods and fields."""
    dsl = pytest.importorskip("elasticsearch.dsl", reason="needs the package 'elasticsearch'")
    from elasticsearch import Elasticsearch

    block = re.search(r"<!-- needs: elasticsearch -->\n```python\n(.*?)```", PAGE, re.DOTALL)[1]
    encoder = SimpleNamespace(encode_query=lambda rows, k=53: np.ones((len(rows), k)))
    made = {"enc": encoder, "queries": np.ones((1, 64))}
    exec(block, made)
    body, mappings = made["body"], made["mappings"]["properties"]
    assert set(body) <= set(inspect.signature(Elasticsearch.search).parameters)
    assert dsl.Search().knn(**body["knn"]).to_dict()["knn"] == body["knn"]  # an unknown name is a TypeError
    known = set(inspect.signature(dsl.DenseVector.__init__).parameters)
    for name in ("short", "full"):
        settings = {key: value for key, value in mappings[name].items() if key != "type"}
        assert set(settings) <= known
        assert dsl.DenseVector(**settings).to_dict() == mappings[name]
    assert len(body["knn"]["query_vector"]) == mappings["short"]["dims"]
    rescored = body["rescore"]["query"]["rescore_query"]["script_score"]
    assert len(rescored["script"]["params"]["query"]) == mappings["full"]["dims"]
