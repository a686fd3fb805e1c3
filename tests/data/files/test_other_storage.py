"""Azure, Google and the hub, by emulators on this machine: files, folders, failures, resumed writes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from firstk import PrefixEncoder, transform_files
from firstk.data import remote
from firstk.data.files import open_vectors, write_vectors
from firstk.data.remote import range_file, storage
from firstk.exceptions import InvalidInputError
from fixtures.object_storage import Faults, faulty_proxy, reached_by
from fixtures.storage_servers import (
    AZURE_KEY,
    DATASET,
    azure_environment,
    azure_server,
    google_environment,
    google_server,
    hub_server,
)

pytestmark = pytest.mark.wings  # emulators of storage
pytest.importorskip("pyarrow.fs", reason="needs the extra 'cloud'")
pytest.importorskip("fsspec", reason="needs the extra 'cloud'")

SERVERS = {
    "az": (azure_server, azure_environment, "az://bucket"),
    "gs": (google_server, google_environment, "gs://bucket"),
    "hf": (hub_server, lambda endpoint: {"HF_TOKEN": "hf_of_the_tests"}, f"hf://{DATASET}"),
}
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    """Yield the scheme, the address of a proxy before its server, and what the proxy does."""
    faults = Faults()
    with SERVERS[request.param][0]() as endpoint, faulty_proxy(endpoint, faults) as proxy:
        # pyarrow's client of Google holds the lock of the interpreter while it waits, and the proxy is in this process.
        yield request.param, endpoint if request.param == "gs" else proxy, faults


@pytest.fixture
def faults(server, monkeypatch):
    scheme, endpoint, faults = server
    faults.plan, faults.done, faults.methods = [], [], ("GET",)
    if scheme == "hf":  # which reads HF_ENDPOINT when it is imported
        from huggingface_hub import constants

        template = constants.HUGGINGFACE_CO_URL_TEMPLATE
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template.replace(constants.ENDPOINT, endpoint))
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    with reached_by(SERVERS[scheme][1](endpoint), monkeypatch):
        if scheme == "az":
            storage.storage_of("az")._fs.create_dir("bucket")
        yield faults


@pytest.fixture
def bucket(server, faults):
    """Return an address of this test's own."""
    return f"{SERVERS[server[0]][2]}/{next(NUMBERS)}"


def test_files_folders_and_patterns(bucket, X):
    assert not remote.place_of(f"{bucket}/rows.parquet").exists()
    for i in range(3):
        write_vectors(f"{bucket}/shards/part-{i}.parquet", X[i * 100 : i * 100 + 100], {"n": np.arange(100) + i * 100})
    found = open_vectors(f"{bucket}/shards").read()
    assert np.array_equal(found.vectors, X)
    assert found.columns["n"].tolist() == list(range(300))
    assert open_vectors(f"{bucket}/*/part-[12].parquet").rows == 200
    with pytest.raises(InvalidInputError, match=f"There is no file '{bucket}/nothing.npy"):
        open_vectors(f"{bucket}/nothing.npy")
    remote.place_of(f"{bucket}/shards/part-2.parquet").unlink()
    assert open_vectors(f"{bucket}/shards").rows == 200


def test_a_file_that_changes_while_it_is_read_raises(bucket, X):
    write_vectors(f"{bucket}/rows.npy", X)
    batches = open_vectors(f"{bucket}/rows.npy").batches(100)
    next(batches)
    write_vectors(f"{bucket}/rows.npy", X + 1)  # of the same size
    with pytest.raises(InvalidInputError, match="was changed while it was read"):
        next(batches)


def test_a_folder_of_codes_is_resumed_and_appears_when_it_is_complete(bucket, X, monkeypatch):
    encoder = PrefixEncoder(3).fit(X).encoder_
    for i in range(3):
        write_vectors(f"{bucket}/in/{i}.npy", X[i * 100 : i * 100 + 100])
    upload, uploaded = remote.RemotePath.upload, []

    def interrupted(path, local):
        uploaded.append(path.name)
        if sum(name.endswith(".npy") for name in uploaded) == 2:
            raise KeyboardInterrupt
        return upload(path, local)

    with monkeypatch.context() as patched:
        patched.setattr(remote.RemotePath, "upload", interrupted)
        with pytest.raises(KeyboardInterrupt):
            transform_files(encoder, f"{bucket}/in", f"{bucket}/out", k=2)
    assert not remote.place_of(f"{bucket}/out").exists()
    outcome = transform_files(encoder, f"{bucket}/in", f"{bucket}/out", k=2, resume=True)
    assert (outcome.finished_before, outcome.files) == (1, 2)
    assert np.allclose(open_vectors(f"{bucket}/out").read().vectors, encoder.encode(X, 2), atol=1e-5)
    assert not remote.place_of(f"{bucket}/out.partial").exists()


@pytest.mark.parametrize("fault", ["503", "drop", "cut"])
def test_reading_goes_on_after_failures(fault, server, bucket, faults, X):
    if server[0] == "gs":
        pytest.skip("the emulator of Google is reached without the proxy")
    write_vectors(path := f"{bucket}/rows.npy", X)
    faults.plan = [fault]
    assert np.array_equal(open_vectors(path).read().vectors, X)
    assert faults.plan == []


def test_a_place_that_is_not_there_is_an_error_message_without_secrets(server, bucket, X, monkeypatch):
    monkeypatch.setattr(range_file, "ATTEMPTS", 1)
    wrong = bucket.replace("bucket", "nobucket").replace("user/name", "user/noname")
    for what in (lambda: open_vectors(f"{wrong}/rows.npy"), lambda: write_vectors(f"{wrong}/rows.npy", X)):
        with pytest.raises(InvalidInputError) as caught:
            what()
        assert wrong in str(caught.value)
        assert AZURE_KEY not in str(caught.value)
        assert "hf_of_the_tests" not in str(caught.value)
