"""What is particular to Milvus Lite: the server of a file is in the process that opens it."""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path

import pytest

from firstk.exceptions import InvalidInputError
from firstk.search.stores import connect


def is_locked(database: Path) -> bool:
    with (database / "LOCK").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_file_that_is_closed_may_be_opened_by_other_processes(address, tmp_path):
    place = address("milvus")
    first, second = connect(place), connect(place)
    assert is_locked(tmp_path / "milvus.db")
    first.close()
    first.close()
    assert second.layout() is None
    assert is_locked(tmp_path / "milvus.db")
    second.close()
    assert not is_locked(tmp_path / "milvus.db")
    again = connect(place)
    assert again.layout() is None
    again.close()


def test_a_client_of_ones_own_stays_open(tmp_path):
    pymilvus = pytest.importorskip("pymilvus", reason="needs the extra 'stores'")
    pytest.importorskip("milvus_lite", reason="needs the extra 'stores'")
    from firstk.search.stores.milvus import Milvus

    client = pymilvus.MilvusClient(str(tmp_path / "own.db"))
    Milvus(client).close()
    assert client.list_collections() == []
    client.close()


def test_what_failed_is_told_once(address, caplog, monkeypatch):
    engine, log = connect(address("milvus")), logging.getLogger("pymilvus")
    monkeypatch.setattr(log, "handlers", [*log.handlers, caplog.handler])  # it does not hand records on
    with pytest.raises(InvalidInputError, match=r"The collection '.*' of Milvus failed"), engine.answering():
        engine.count()  # of a collection that is not there
    assert "pymilvus" not in {record.name.partition(".")[0] for record in caplog.records}
    engine.close()
