"""Files and folders under their names: old or new, never a mixture; nothing is left of killed processes."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from firstk._base import arrays as array_files
from firstk._base import atomic_file as atomic_files
from firstk._base.atomic_file import atomic_file
from firstk.encoder.storage.folder import read_model, write_model
from firstk.exceptions import InvalidInputError

SMALL = {"a": np.arange(4.0)}
OLD, NEW = {"which": "old"}, {"which": "new"}


def killed(script, *arguments):
    """Run a script that kills itself, as a power cut would, and say that it did."""
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr


# -- one file ----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_follows_no_planted_link(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "run.checkpoint"
    victim.write_text("precious")
    for name in (".run.checkpoint.draft", ".run.checkpoint.tmp"):
        (tmp_path / name).symlink_to(victim)
    array_files.write(target, SMALL)
    assert victim.read_text() == "precious"
    np.testing.assert_array_equal(array_files.read(target)[0]["a"], SMALL["a"])


def test_a_temporary_file_is_never_one_that_is_there(tmp_path, monkeypatch):
    """Even where its name was guessed: a link is not followed, and what it points to is not overwritten."""
    victim, seen = tmp_path / "victim", []
    victim.write_text("precious")
    monkeypatch.setattr(atomic_files.secrets, "token_hex", lambda size: "0")
    with atomic_file(tmp_path / "out.bin", "A file") as temporary:
        seen.append(temporary)
    seen[0].symlink_to(victim)
    with (
        pytest.raises(InvalidInputError, match="File exists"),
        atomic_file(tmp_path / "out.bin", "A file") as temporary,
    ):
        temporary.write_text("overwritten")
    assert victim.read_text() == "precious"


def steps_of(monkeypatch, write):
    """Return what reaches the disk, in order, while something is written: "file" or "folder", and "renamed"."""
    steps = []
    synced, replaced, renamed = os.fsync, os.replace, os.rename

    def sync(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        synced(handle)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda *names: (replaced(*names), steps.append("renamed")))
    monkeypatch.setattr(os, "rename", lambda *names: (renamed(*names), steps.append("renamed")))
    write()
    return steps


def test_what_is_written_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(tmp_path, monkeypatch):
    target = tmp_path / "run.checkpoint"
    assert steps_of(monkeypatch, lambda: array_files.write(target, SMALL)) == ["file", "renamed", "folder"]
    np.testing.assert_array_equal(array_files.read(target)[0]["a"], SMALL["a"])


def test_the_files_of_a_model_are_on_the_disk_before_it_has_its_name_and_then_the_name_is(tmp_path, monkeypatch):
    steps = steps_of(monkeypatch, lambda: write_model(tmp_path / "model", OLD, SMALL))
    assert steps == ["file"] * 3 + ["folder", "renamed", "folder"]


def test_two_runs_may_share_the_path_of_a_checkpoint(tmp_path):
    target, wrong = tmp_path / "run.checkpoint", []
    contents = [{"a": np.full(50_000, value)} for value in (1.0, 2.0)]
    array_files.write(target, contents[0])

    def write(arrays):
        try:
            for _ in range(25):
                array_files.write(target, arrays)
        except Exception as error:
            wrong.append(error)

    writers = [threading.Thread(target=write, args=(arrays,)) for arrays in contents]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = array_files.read(target)[0]["a"]
        assert found.min() == found.max()
    assert wrong == []
    assert os.listdir(tmp_path) == [target.name]


def test_a_killed_write_of_a_checkpoint_leaves_the_old_one_and_the_next_removes_what_is_left(tmp_path):
    target = tmp_path / "run.checkpoint"
    array_files.write(target, SMALL)
    killed(
        """
import os, sys, numpy as np
from firstk._base import arrays as array_files
os.fsync = lambda handle: os.kill(os.getpid(), 9)
array_files.write(sys.argv[1], {"a": np.zeros(9)})
""",
        target,
    )
    assert len(os.listdir(tmp_path)) == 2
    np.testing.assert_array_equal(array_files.read(target)[0]["a"], SMALL["a"])
    array_files.write(target, SMALL)
    assert os.listdir(tmp_path) == [target.name]


# -- a folder ----------------------------------------------------------------------------------------------------------

SAVE = """
import os, sys, numpy as np
from firstk._base import atomic_file as atomic_files
from firstk.encoder.storage import folder as _storage
if "two renames" in sys.argv:
    atomic_files._exchange = lambda a, b: False
def last_breath(call):
    def then_killed(*arguments, **keywords):
        call(*arguments, **keywords)
        os.kill(os.getpid(), 9)
    return then_killed
name = sys.argv[2]
setattr(os, name, last_breath(getattr(os, name)))
_storage.write_model(sys.argv[1], {"which": "new"}, {"a": np.arange(4.0)})
"""


def test_a_save_killed_while_it_writes_leaves_the_old_model_and_the_next_removes_what_is_left(tmp_path):
    target = tmp_path / "model"
    write_model(target, OLD, SMALL)
    killed(SAVE, target, "fsync")
    assert len(os.listdir(tmp_path)) == 2
    assert read_model(target)[0] == OLD
    write_model(target, NEW, SMALL)
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("first", ["read", "write"])
def test_a_model_is_not_lost_between_two_renames(tmp_path, first):
    """Where folders cannot be exchanged in one step: whoever comes next finds the old model and puts it back."""
    target = tmp_path / "model"
    write_model(target, OLD, SMALL)
    killed(SAVE, target, "rename", "two renames")
    if first == "read":
        assert read_model(target)[0] == OLD
        assert target.is_dir()
    write_model(target, NEW, SMALL)
    assert read_model(target)[0] == NEW
    assert os.listdir(tmp_path) == ["model"]


def test_a_model_behind_a_link_is_not_lost_between_two_renames(tmp_path):
    target, link = tmp_path / "model", tmp_path / "link"
    write_model(target, OLD, SMALL)
    link.symlink_to(target)
    killed(SAVE, target, "rename", "two renames")
    assert read_model(link)[0] == OLD
    assert target.is_dir()


@pytest.mark.parametrize(("code", "outcome"), [(errno.EINVAL, False), (errno.ENOSYS, False), (errno.EACCES, OSError)])
def test_where_folders_cannot_be_exchanged_in_one_step_there_are_two_renames(tmp_path, monkeypatch, code, outcome):
    """Not every file system can; any other failure is an error."""

    def refusing(*_):
        ctypes.set_errno(code)
        return -1

    write_model(tmp_path / "model", OLD, SMALL)
    monkeypatch.setattr(atomic_files, "_renameat2", lambda: refusing)
    if outcome is False:
        write_model(tmp_path / "model", NEW, SMALL)
    else:
        with pytest.raises(InvalidInputError, match="Permission denied"):
            write_model(tmp_path / "model", NEW, SMALL)
    assert read_model(tmp_path / "model")[0] == (NEW if outcome is False else OLD)
    assert os.listdir(tmp_path) == ["model"]


def test_the_old_model_is_read_where_it_may_not_be_put_back(tmp_path, monkeypatch):
    target = tmp_path / "model"
    write_model(target, OLD, SMALL)
    killed(SAVE, target, "rename", "two renames")
    monkeypatch.setattr(atomic_files.os, "rename", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    assert read_model(target)[0] == OLD
    assert not target.exists()


def test_an_old_model_that_cannot_be_put_back_stands_in_for_nothing_else(tmp_path):
    """A process that is alive, or on another machine, may be at work between its renames."""
    target = tmp_path / "model"
    write_model(target, OLD, SMALL)
    aside = tmp_path / f"{atomic_files._stem(target)}{os.getppid()}-0.old"
    target.rename(aside)
    assert read_model(target)[0] == OLD
    assert aside.is_dir()
    assert not target.exists()


@pytest.mark.parametrize("exchange", [True, False])
def test_readers_find_the_old_model_or_the_new_while_it_is_replaced(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(atomic_files, "_exchange", lambda a, b: False)
    target, wrong = tmp_path / "model", []
    write_model(target, OLD, SMALL)

    def write():
        try:
            for i in range(40):
                write_model(target, {"which": "old" if i % 2 else "new"}, {"a": np.arange(4.0 + i)})
        except Exception as error:
            wrong.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert read_model(target)[0] in (OLD, NEW)
    assert wrong == []
    assert os.listdir(tmp_path) == ["model"]


def test_two_writers_of_one_model_both_succeed(tmp_path, monkeypatch):
    """In two renames: one may find that the other has just put its own model there."""
    monkeypatch.setattr(atomic_files, "_exchange", lambda a, b: False)
    target, wrong = tmp_path / "model", []

    def write():
        try:
            for _ in range(25):
                write_model(target, NEW, SMALL)
        except Exception as error:
            wrong.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert wrong == []
    assert read_model(target)[0] == NEW
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("place", [".", ".."])
def test_the_folder_that_a_process_runs_in_is_not_replaced(tmp_path, monkeypatch, place):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InvalidInputError, match=r"the current folder or one above it\. Name a folder in it"):
        write_model(place, NEW, SMALL)
    assert os.listdir(".") == []


@pytest.mark.parametrize("mask", [0o077, 0o022, 0o027])
def test_modes_respect_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        model = write_model(tmp_path / "model", OLD, SMALL, extra={"notes.txt": ""})
        array_files.write(tmp_path / "run.checkpoint", SMALL)
    finally:
        os.umask(before)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(model) == 0o777 & ~mask
    assert {mode(file) for file in (*model.iterdir(), tmp_path / "run.checkpoint")} == {0o666 & ~mask}
