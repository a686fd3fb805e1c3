"""The table of stores is that of the code, with the versions that the tests run."""

from __future__ import annotations

import re
from pathlib import Path

from firstk.integrations.stores import STORES

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
    from firstk.integrations import stores

    for row in rows():
        if row["class"] != "-":
            metrics = ("cosine", "inner_product", "l2") if row["metrics"] == "all" else row["metrics"].split(", ")
            assert tuple(metrics) == getattr(stores, row["class"]).metrics
