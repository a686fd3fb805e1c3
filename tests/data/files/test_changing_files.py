"""A file that changes while it is read is refused; its old and new rows are never mixed."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk._base.input_file import Stamp
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.column_files import load_columns, open_column
from firstk.data.files.shards import ShardLog
from firstk.data.files.vector_table import FORMATS
from firstk.estimator.transform_files import transform_files
from firstk.exceptions import InvalidInputError

pytest.importorskip("pyarrow", reason="the formats of the extra 'tables' need pyarrow")

ENDINGS = [form.endings[0] for form in FORMATS]
N = 200


def written(path, value):
    """Write rows that are all `value`, with an earlier time: the clock of a file system ticks slowly."""
    write_vectors(path, np.full((N, 4), value, dtype=np.float32))
    os.utime(path, ns=(10**18, 10**18))
    return path


def replaced(path):
    os.replace(written(path.with_name(f"other-{path.name}"), 2), path)


def replaced_later(path):
    other = written(path.with_name(f"other-{path.name}"), 2)
    os.utime(other)
    os.replace(other, path)


def overwritten(path):
    other = written(path.with_name(f"other-{path.name}"), 2)
    with other.open("rb") as new, path.open("r+b") as old:
        shutil.copyfileobj(new, old)


def cut_off(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    os.truncate(path, 0)


def appended_to(path):
    with path.open("ab") as file:
        file.write(path.read_bytes()[-40:])


def removed(path):
    path.unlink()


CHANGES = [replaced, replaced_later, overwritten, cut_off, emptied, appended_to, removed]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_changes_between_two_batches(tmp_path, ending, change):
    path = written(tmp_path / f"a{ending}", 1)
    table = open_vectors(path)
    batches = table.batches(20)
    first = next(batches)
    change(path)
    with pytest.raises(InvalidInputError, match="was changed while it was read"):
        next(batches)
    assert (first.vectors == 1).all()  # rows that were read do not lean on the file
    with pytest.raises(InvalidInputError, match="was changed while it was read"):  # nor does another pass mix them
        table.read()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_shard_that_changes_before_it_is_reached(tmp_path, change):
    for i in range(3):
        written(tmp_path / f"part-{i}.npy", 1)
    batches = open_vectors(tmp_path).batches(N)
    next(batches)
    change(tmp_path / "part-2.npy")
    next(batches)
    with pytest.raises(InvalidInputError, match=r"part-2\.npy' was changed while it was read"):
        next(batches)


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".csv", ".safetensors", ".arrow"])
def test_columns_of_a_file_that_changes(tmp_path, ending):
    write_vectors(tmp_path / f"a{ending}", np.ones((N, 2)), {"a": np.arange(N), "b": np.arange(N)})
    held = load_columns(tmp_path / f"a{ending}")
    assert len(held["a"]) == N
    write_vectors(tmp_path / f"a{ending}", np.ones((N, 2)), {"a": np.arange(N), "b": -np.arange(N)})
    with pytest.raises(InvalidInputError, match="was changed while it was read"):
        held["b"]


def test_labels_that_change_between_two_batches(tmp_path):
    np.save(tmp_path / "y.npy", np.zeros(N, np.int64))
    labels = open_column(tmp_path / "y.npy")
    assert (labels.take(np.arange(10)) == 0).all()
    np.save(tmp_path / "z.npy", np.ones(N, np.int64))
    os.replace(tmp_path / "z.npy", tmp_path / "y.npy")
    with pytest.raises(InvalidInputError, match="was changed while it was read"):
        labels.take(np.arange(10, 20))


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_input_that_goes_is_not_called_the_output(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("firstk.estimator.transform_files._BATCH_NUMBERS", 40)
    path = written(tmp_path / f"a{ending}", 1)
    encoder = PrefixEncoder(2).fit(np.random.default_rng(0).normal(size=(30, 4))).encoder_
    with pytest.raises(InvalidInputError, match=rf"a{ending}' was changed while it was read: it was removed"):
        transform_files(encoder, path, tmp_path / "out.npy", progress=lambda rows: path.unlink(missing_ok=True))
    assert not any(tmp_path.iterdir())


def test_a_stamp_from_another_machine_has_no_numbers_of_devices(tmp_path):
    """Workers of a cluster open the file by its name, and their file systems number devices and files anew."""
    import pickle

    path = written(tmp_path / "a.npy", 1)
    stamp = pickle.loads(pickle.dumps(Stamp.of(path)))
    assert (stamp.device, stamp.inode) == (0, 0)
    stamp.check(path)
    written(tmp_path / "a.npy", 2)
    stamp.check(path)  # of the same size and time
    os.utime(path)
    with pytest.raises(InvalidInputError, match="another file took its place, or it was written to"):
        stamp.check(path)


# -- what is no regular file -------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("ending", [*ENDINGS, ".txt"])
@pytest.mark.parametrize("reads", [open_vectors, open_column, load_columns])
def test_a_pipe_or_a_device_raises_an_error_at_once(tmp_path, ending, reads):
    os.mkfifo(tmp_path / f"pipe{ending}")
    os.symlink("/dev/zero", tmp_path / f"zero{ending}")
    for name, kind in (("pipe", "a pipe"), ("zero", "a device")):
        with pytest.raises(InvalidInputError, match=f"it is {kind}, and a regular file is needed"):
            reads(tmp_path / f"{name}{ending}")


@pytest.mark.parametrize("leads_to", ["nowhere/else", "out.partial"])
def test_a_link_where_a_folder_of_shards_will_be_written_is_refused(leads_to, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink(leads_to, "out.partial")
    for resume in (False, True):
        with pytest.raises(InvalidInputError, match=r"'out\.partial' is a link"):
            ShardLog.begin(Path("out"), {}, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["out.partial"]
