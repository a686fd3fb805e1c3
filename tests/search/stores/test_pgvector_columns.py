"""Codes of one length are kept by pgvector in the precision that was asked for."""

import numpy as np
import pytest

from firstk.data.files import write_vectors
from firstk.search.moving import Recode, move
from firstk.search.stores import PrefixStore, connect

pytestmark = pytest.mark.wings


@pytest.mark.parametrize(("precision", "kind", "size"), [("float16", "halfvec(16)", 40), ("binary", "bit(16)", 10)])
def test_a_column_has_the_precision(precision, kind, size, vectors, coder, address, tmp_path):
    X, Q = vectors
    write_vectors(tmp_path / "rows.npz", X, {"id": np.arange(len(X))})
    place = address("pgvector")

    moved = move(tmp_path / "rows.npz", place, Recode(coder, k=16, precision=precision))

    assert moved.verified
    with PrefixStore.open(connect(place), coder) as store:
        connection = store.engine.connection
        table = place.rpartition("#")[2]
        column = connection.execute(
            "SELECT format_type(atttypid, atttypmod), avg(pg_column_size(code)) FROM pg_attribute, "
            f"{table} WHERE attrelid = '{table}'::regclass AND attname = 'code' GROUP BY 1"
        ).fetchone()
        found = store.search(Q, 10)
        Z, asked = coder.encode_document(X), coder.encode_query(Q)
        if precision == "binary":
            Z, asked = np.where(Z > 0, 1.0, -1.0), np.where(asked > 0, 1.0, -1.0)
        cosines = (asked / np.linalg.norm(asked, axis=1)[:, None]) @ (Z / np.linalg.norm(Z, axis=1)[:, None]).T
        best = np.sort(cosines, axis=1)[:, ::-1][:, :10]
        assert column[0] == kind
        assert column[1] <= size
        assert np.abs(np.array(found.scores) - best).mean() < 0.02, "an HNSW graph misses a few"
        read = next(store.rows(1000))
        assert np.abs(np.array(read.codes[:5]) - Z[np.array(read.ids[:5])]).max() < 2e-3
