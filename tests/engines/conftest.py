"""One set of rows for both engines: files with a list column, the fit of all rows, and what differs from it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from firstk import PrefixEncoder

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, P, FILES = 1200, 6, 6
FITS = {
    "fisher": (lambda: PrefixEncoder(3, objective="fisher"), {"label": "label"}),
    "error_bound": (lambda: PrefixEncoder(3, objective="error_bound"), {"label": "label"}),
    "reconstruction": (lambda: PrefixEncoder(3), {"weight": "weight"}),
    "pairs": (lambda: PrefixEncoder(3, objective="similarity"), {"vectors": ("vector", "other")}),
}


def pytest_collection_modifyitems(items):
    """Mark everything here: engines take half a minute to start."""
    for item in items:
        if "engines" in item.path.parts:
            item.add_marker("engines")


@pytest.fixture(scope="session")
def rows():
    """Rows of four classes, of which the last file lacks two; vectors in float64 and their neighbors."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, N)
    y[-N // FILES :] %= 2
    X = rng.normal(size=(N, P)) * np.linspace(3, 0.5, P) + 2 * rng.normal(size=(4, P))[y]
    label = np.array(["red", "green", "blue", "white"])[y]
    return SimpleNamespace(
        X=X, other=X + 0.3 * rng.normal(size=X.shape), label=label, weight=rng.integers(1, 4, N) / 2.0
    )


@pytest.fixture(scope="session")
def store(rows, tmp_path_factory):
    """Six files of 200 rows, and one without any."""
    folder = tmp_path_factory.mktemp("store")
    for i in range(FILES + 1):
        part = slice(i * N // FILES, (i + 1) * N // FILES)
        columns = {"id": np.arange(N)[part], "label": rows.label[part], "weight": rows.weight[part]}
        lists = {name: pa.array(list(getattr(rows, key)[part]), pa.list_(pa.float64())) for name, key in
                 (("vector", "X"), ("other", "other"))}  # fmt: skip
        pq.write_table(pa.table(columns | lists), folder / f"{i}.parquet")
    return str(folder)


@pytest.fixture(scope="session")
def expected(rows):
    """Each fit on all rows, in one process."""

    def fit(name):
        encoder, _ = FITS[name][0](), None
        if name == "pairs":
            return encoder.fit_pairs(rows.X, rows.other)
        y = None if name == "reconstruction" else rows.label
        return encoder.fit(rows.X, y, sample_weight=rows.weight if name == "reconstruction" else None)

    return {name: fit(name) for name in FITS}


def block_of_the_docs(title, store, place):
    """Return the code under a title of docs/scale.md, for these rows and for codes in a folder."""
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    code = page.partition(f"# {title}\n")[2].partition("```python\n")[2].partition("```")[0]
    code = code.replace('"store"', repr(store)).replace('"codes"', repr(str(place / "codes")))
    return code.replace("64", "2").replace("concurrency=8", "concurrency=1")


def same(found, expected):
    """Compare a fit with that of one process: components, choices made from the sample, and who the rows were."""
    np.testing.assert_allclose(found.components_, expected.components_, rtol=0, atol=1e-9)
    assert found.objective_ == expected.objective_
    assert found.encoder_.record.data_fingerprint == expected.encoder_.record.data_fingerprint
