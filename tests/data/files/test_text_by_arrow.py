"""csv by pyarrow and cell by cell: the same numbers, the same text, and the same errors."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstk.data.files import open_vectors, text, write_vectors
from firstk.exceptions import InvalidInputError

pytest.importorskip("pyarrow", reason="large files are read by pyarrow")

NUMBERS = ["0.5", "-1e-7", "3", " 2 ", "", "nan", "NaN", "N/A", "inf", "+1.5", "1_0", "0x1", "1,5", "٣", "1e400", "no"]
TEXTS = ["a", "", " b ", '"c, d"', '"e ""f"""', '"g\nh"', '"i"j', 'k"l', '""m', 'n"', "007", "é", "null", '"', '""']
usual = st.floats(-1e6, 1e6).map(repr)
rows = st.lists(
    st.tuples(st.one_of(usual, usual, st.sampled_from(NUMBERS)), usual, st.sampled_from(TEXTS)), min_size=3, max_size=12
)


def outcome(path):
    """Return what reading gives, or what it says."""
    try:
        table = open_vectors(path, "x", nan="drop")
        batches = list(table.batches(4, table.columns))
        vectors = np.concatenate([batch.vectors for batch in batches]).tobytes()
        return (
            table.rows,
            vectors,
            [batch.columns["t"].tolist() for batch in batches],
            [b.rows.tolist() for b in batches],
        )
    except InvalidInputError as error:
        return str(error)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=rows, ragged=st.integers(0, 20), end=st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_both_ways_give_the_same(cells, ragged, end, tmp_path, monkeypatch):
    lines = ["x0,x1,t", *(",".join(row) for row in cells)]
    if ragged < len(cells):
        lines[ragged + 1] += ",1"
    path = tmp_path / "rows.csv"
    path.write_bytes((end.join(lines) + end).encode())
    monkeypatch.setattr(text, "_MANY", 0)
    fast = outcome(path)
    with monkeypatch.context() as patched:
        patched.setattr(text.TextReader, "_by_arrow", lambda *_: None)
        assert fast == outcome(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1.5,oops,3,a", r"row 7000 of column 'x1' holds 'oops', not a number"),
        ("1.5,2.5,3,a,b", r"row 7000 has 5 cells, and the first line 4"),
        ('1.5,2.5,3,"a', r"a quote is opened and never closed"),
        ("1.5,2.5,3,a\0", r"line 7002 holds a NUL character"),
    ],
)
def test_errors_in_a_large_file_name_the_row(line, message, tmp_path):
    lines = ["x0,x1,x2,t", *["0.5,1.5,2.5,a"] * 7000, line, *["0.5,1.5,2.5,a"] * 7000]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidInputError, match=message):
        for _ in open_vectors(path).batches(columns=("t",)):
            pass


def test_large_files_are_read_by_pyarrow(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(9000, 4)).astype(np.float32)
    write_vectors(tmp_path / "rows.csv", X, {"t": np.array([f'no. {i}, "{i}"' for i in range(9000)])})
    table = open_vectors(tmp_path / "rows.csv")
    monkeypatch.setattr(text.TextReader, "_by_cells", None)
    found = table.read()
    np.testing.assert_array_equal(found.vectors.astype(np.float32), X)
    assert found.columns["t"][7] == 'no. 7, "7"'
