"""A file read by ranges gives the bytes that are there, in any order of reads, with few requests and bounded memory."""

from __future__ import annotations

import io

import numpy as np
import pytest

from firstk.data.remote import RemotePath, check_there, is_remote, place_of, range_file, shown, shown_place
from firstk.data.remote.range_file import RangeFile, Ranges, with_retries
from firstk.data.remote.secrets import scrubbed
from firstk.exceptions import InvalidInputError


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(range_file, "_SMALLEST", 16)
    monkeypatch.setattr(range_file, "_LARGEST", 128)
    monkeypatch.setattr(range_file, "_KEPT", 300)


def counted(held):
    asked = []

    def fetch(start, stop):
        asked.append((start, stop))
        return held[start:stop]

    return RangeFile(Ranges(len(held), fetch)), asked


def test_any_reads_are_those_of_the_bytes(small):
    held = np.random.default_rng(0).bytes(5000)
    file, _ = counted(held)
    plain, rng = io.BytesIO(held), np.random.default_rng(1)
    for _ in range(500):
        if rng.random() < 0.5:
            place = int(rng.integers(0, 5100))
            file.seek(place)
            plain.seek(place)
        count = int(rng.integers(0, 400))
        assert file.read(count) == plain.read(count)
        assert file.tell() == plain.tell()
        assert sum(len(one) for _, one in file._ranges.held) <= 300 + 128


def test_one_pass_takes_few_requests_of_growing_size(small):
    file, asked = counted(bytes(5000))
    while file.read(10):
        pass
    file.close()
    sizes = [stop - start for start, stop in sorted(asked)]
    assert sizes[:4] == [16, 64, 128, 128]
    assert max(sizes) == 128
    assert sum(sizes) == 5000


def test_too_few_bytes_are_an_error():
    file = RangeFile(Ranges(100, lambda start, stop: b"short"))
    with pytest.raises(OSError, match="0 to 100 were asked for, and 5 came"):
        file.read(10)


def test_retries_end_and_do_not_hide_what_is_missing(monkeypatch):
    monkeypatch.setattr(range_file, "WAIT", 0)
    tried = []

    def fails(error, times):
        def work():
            tried.append(1)
            if len(tried) <= times:
                raise error
            return "done"

        tried.clear()
        return work

    assert with_retries(fails(OSError("no"), 3), (OSError,)) == "done"
    with pytest.raises(OSError, match="no"):
        with_retries(fails(OSError("no"), 100), (OSError,))
    assert len(tried) == range_file.ATTEMPTS
    with pytest.raises(FileNotFoundError):
        with_retries(fails(FileNotFoundError(), 1), (OSError,))
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://bucket/a/b.npy", ("s3", "bucket/a/b.npy")),
        ("s3:/bucket/b.npy", ("s3", "bucket/b.npy")),  # as pathlib leaves it
        ("HTTPS://host/b.npy?x=1", ("https", "host/b.npy?x=1")),
        ("s3.npy", None),
        ("C:/rows.npy", None),
        ("sqlite:/rows.db", None),
    ],
)
def test_addresses_and_paths(text, found):
    assert is_remote(text) == (found is not None)
    place = place_of(text)
    if found is not None:
        assert (place.scheme, place.key) == found
        assert place.name == "b.npy"


def test_names_of_remote_paths():
    path = RemotePath("s3", "bucket/folder/rows.csv.gz")
    assert (path.name, path.suffix, str(path.parent)) == ("rows.csv.gz", ".gz", "s3://bucket/folder")
    assert str(path.with_name("a") / "b") == "s3://bucket/folder/a/b"
    assert shown("https://u:p@host:1/a.npy?sig=x") == "https://host:1/a.npy"


@pytest.mark.parametrize(
    "address", ["https://u:p@ss@host:1/a.npy?sig=hidden", "https://u:pass@host:1/a.npy?sig=hidden"]
)
def test_no_secret_is_shown(address):
    place = place_of(address)
    for text in (str(place), repr(place), shown_place(address), scrubbed(f"no {address}", address), f"{[place]}"):
        assert "ss@" not in text
        assert "hidden" not in text
        assert "host:1/a.npy" in text
    assert shown_place("a@b?c.npy") == "a@b?c.npy"


def test_a_pattern_that_cannot_be_listed_raises_a_clear_error(monkeypatch):
    def fails(path):
        raise OSError(5, "Listing it failed: 403")

    monkeypatch.setattr(RemotePath, "exists", lambda path: False)
    monkeypatch.setattr(RemotePath, "matches", fails)
    with pytest.raises(InvalidInputError, match=r"Cannot read 'memory://bucket/.*403"):
        check_there("memory://bucket/*.npy")
