"""Cells of csv files: which are numbers, and which stay the text that they are."""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstk.advice.inputs import open_labeled, read_rows
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.column_files import load_columns, open_column
from firstk.exceptions import InvalidInputError


def table_of(path, labels):
    lines = ["x0,x1,label", *(f"{i},{i % 7},{label}" for i, label in enumerate(labels))]
    path.write_text("\n".join(lines) + "\n")
    return path


MANY = [str(i % 3) for i in range(400)]


@pytest.mark.parametrize("odd", ["007", "-07", "00", "9" * 30, "1" * 5000])
@pytest.mark.parametrize("at", [0, 399])
def test_labels_stay_text_where_numbers_would_not_give_them_back(tmp_path, odd, at):
    """Wherever the cell is, and in batches of any size."""
    labels = [*MANY[:at], odd, *MANY[at + 1 :], "7"]
    path = table_of(tmp_path / "a.csv", labels)
    assert read_rows(path, label="label").y.tolist() == labels
    batches = list(open_labeled(path, label="label").batches(50))
    assert {y.dtype.kind for _, y in batches} == {"U"}
    assert np.concatenate([y for _, y in batches]).tolist() == labels
    assert open_column(path, "label").whole().tolist() == labels
    assert load_columns(path)["label"].tolist() == labels


def test_one_file_decides_for_all_shards(tmp_path):
    (tmp_path / "s").mkdir()
    table_of(tmp_path / "s" / "0.csv", ["7", "8"])
    table_of(tmp_path / "s" / "1.csv", ["007", "8"])
    labels = ["7", "8", "007", "8"]
    assert [y.tolist() for _, y in open_labeled(tmp_path / "s", label="label").batches(1)] == [[y] for y in labels]
    column = open_column(tmp_path / "s", "label")
    assert [column.take(np.array([i])).tolist() for i in range(4)] == [[y] for y in labels]


def test_numbers_stay_numbers(tmp_path):
    for labels in (["7", "-8", "0"], ["-0", "+1", "-1"], [str(2**63 - 1), str(-(2**63))]):
        y = read_rows(table_of(tmp_path / "a.csv", labels), label="label").y
        assert (y.tolist(), y.dtype) == ([int(label) for label in labels], np.int64)
    y = read_rows(table_of(tmp_path / "a.csv", ["0.5", "0.50", "+1", "01.5"]), label="label").y
    assert (y.tolist(), y.dtype) == ([0.5, 0.5, 1.0, 1.5], np.float64)


def test_a_label_that_is_missing_among_text_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"Column 'label' takes a label or target for every row.*\(row 1\)"):
        read_rows(table_of(tmp_path / "a.csv", ["007", "", "7"]), label="label")


@pytest.mark.parametrize("cell", ["1_0", "１０", "1 0"])
def test_what_only_python_takes_for_a_number(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text("x0,x1\n" + "1,2\n" * 300 + f"{cell},2\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=f"row 300 of column 'x0' holds '{cell}', not a number"):
        open_vectors(path).read()
    with pytest.raises(InvalidInputError, match=f"row 400 of column 'label' holds '{cell}', not a number"):
        read_rows(table_of(path, [*MANY, cell]), label="label")
    path.write_text('e\n"[1, 2]"\n' + f'"[{cell}, 2]"\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="row 1 of column 'e' is not a list of numbers"):
        open_vectors(path).read()


DEEP = "[" * 200_000 + "1,2" + "]" * 200_000
HUGE = f"[{'1' * 5000}, 2]"


@pytest.mark.parametrize("cell", [DEEP, HUGE, f"[1{'0' * 400}, 2]", '[{"a": 1}, 2]', "[[1, 2], [3]]"])
def test_a_cell_that_is_a_list_of_something_else(tmp_path, cell):
    path = tmp_path / "a.csv"
    quoted = '"' + cell.replace('"', '""') + '"'
    path.write_text(f"e\n{quoted}\n")
    with pytest.raises(InvalidInputError, match="none of its columns is a vector"):
        open_vectors(path)
    path.write_text(f'e\n"[1, 2]"\n{quoted}\n')
    with pytest.raises(InvalidInputError, match="row 1 of column 'e' is not a list of numbers"):
        open_vectors(path).read()


def test_names_with_more_digits_than_python_reads(tmp_path):
    (tmp_path / "a.csv").write_text(f"x{'1' * (sys.get_int_max_str_digits() + 1)},x2\n1,2\n")
    assert open_vectors(tmp_path / "a.csv").width == 2


def test_a_nul_character_raises_an_error(tmp_path):
    """At the end of a text numpy drops it, and two labels would be one."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"x0,x1,label\n1,2,a\n3,4,a\0\n")
    with pytest.raises(InvalidInputError, match="line 3 holds a NUL character"):
        open_vectors(path)
    (tmp_path / "y.txt").write_bytes(b"a\na\0\n")
    with pytest.raises(InvalidInputError, match=r"does not end in a NUL character.*'a\\x00' at row 1"):
        open_column(tmp_path / "y.txt").whole()
    with pytest.raises(InvalidInputError, match=r"write_vectors takes text that does not end in a NUL character"):
        write_vectors(path, np.ones((2, 2)), {"label": ["a", "a\0"]})
    pa = pytest.importorskip("pyarrow", reason="tables in memory need pyarrow")
    table = open_vectors(pa.table({"x0": [1.0, 2.0], "x1": [3.0, 4.0], "label": ["a", "a\0"]}), beside=("label",))
    with pytest.raises(InvalidInputError, match=r"A column of text takes text that does not end in a NUL character"):
        table.read()


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


CELLS = ["0.5", "-1e-7", " 2 ", "", "nan", "NaN", "N/A", "+1.5", "1_0", "0x1", "1,5", "٣", "1e400", "no", '"3"']


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.sampled_from(CELLS), min_size=1, max_size=4))
def test_numbers_cell_by_cell(cells, tmp_path):
    """A column after its first rows is what a loop over cells finds: numbers, NaN, or an error that names the first."""
    path = tmp_path / "rows.csv"
    path.write_text("x0;x1\n" + "1.5;1\n" * 256 + "".join(f"{cell};1\n" for cell in cells), encoding="utf-8")
    wrong = [i for i, cell in enumerate(cells) if cell in ("1_0", "0x1", "1,5", "٣", "no")]
    if wrong:
        with pytest.raises(InvalidInputError, match=f"row {256 + wrong[0]} of column 'x0' holds"):
            open_vectors(path, nan="drop").read()
    else:
        kept = [float(cell.strip('"')) for cell in cells if cell not in ("", "nan", "NaN", "N/A", "1e400")]
        assert open_vectors(path, nan="drop").read().vectors[256:, 0].tolist() == kept


# -- what spreadsheets write -------------------------------------------------------------------------------------------


def tables_of_spreadsheets():
    """The same rows with other marks between cells, decimal commas, a mark at the start and other line ends."""
    points = [["x0", "x1", "label"], ["0.5", "-1", "a,b"], ["12", "1.25e-3", "c"], ["0.125", "3", "d"]]
    commas = [points[0], *([*(cell.replace(".", ",") for cell in row[:2]), row[2]] for row in points[1:])]

    def text(rows, mark, quote=""):
        return "\n".join(mark.join(f"{quote}{cell}{quote}" for cell in row) for row in rows) + "\n"

    return {
        "semicolons": text(points, ";"),
        "bars": text(points, "|"),
        "tabs in a csv": text(points, "\t"),
        "semicolons and decimal commas": text(commas, ";"),
        "tabs and decimal commas": text(commas, "\t"),
        "quoted decimal commas": text(commas, ",", '"'),
        "a mark and other line ends": "\ufeff" + text(commas, ";").replace("\n", "\r\n"),
        "blank lines": text(points, ";").replace("\n", "\n\n"),
    }


@pytest.mark.parametrize("kind", tables_of_spreadsheets())
def test_what_spreadsheets_write_is_read(tmp_path, kind):
    path = tmp_path / "a.csv"
    path.write_bytes(tables_of_spreadsheets()[kind].encode())
    found = open_vectors(path).read()
    np.testing.assert_array_equal(found.vectors, [[0.5, -1], [12, 1.25e-3], [0.125, 3]])
    assert found.columns["label"].tolist() == ["a,b", "c", "d"]
    np.testing.assert_array_equal(load_columns(path)["x0"], [0.5, 12, 0.125])


def test_where_commas_are_decimal_a_point_is_no_number(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x0;x1\n" + "0,5;1,5\n" * 300 + "0,5;1.500\n")
    with pytest.raises(InvalidInputError, match=r"row 300 of column 'x1' holds '1\.500', not a number \(numbers have"):
        open_vectors(path).read()


def test_commas_between_thousands_are_not_taken_for_decimal(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x0;x1\n1,234;2,345\n3,456;4,567\n")
    with pytest.raises(InvalidInputError, match="none of its columns is a vector"):
        open_vectors(path)
    path.write_text("x0;x1;tags\n0.5;0.25;1,5\n0.5;0.75;2,7\n")  # points decide: a list of tags is no number
    table = open_vectors(path)
    assert (table.width, table.read().columns["tags"].tolist()) == (2, ["1,5", "2,7"])


def test_decimal_commas_without_names(tmp_path):
    (tmp_path / "a.csv").write_text("0,5;1,5\n2,5;3,5\n")
    with pytest.raises(InvalidInputError, match="first line holds numbers"):
        open_vectors(tmp_path / "a.csv")


def test_targets_with_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("x0;x1;y\n1;2;0,5\n3;4;1\n5;7;2,25\n")
    assert read_rows(tmp_path / "a.csv", label="y").y.tolist() == [0.5, 1.0, 2.25]
