"""Files in object storage: all formats, folders, patterns, failures of servers and networks, atomic writes, secrets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder, transform_files
from firstk.data import remote
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.vector_table import FORMATS, find_files
from firstk.data.remote import range_file, storage
from firstk.exceptions import InvalidInputError, MissingExtraError
from fixtures.object_storage import (
    SECRET,
    Faults,
    environment,
    faulty_proxy,
    make_bucket,
    reached_by,
    s3_server,
    worker_environment,
)

pytestmark = pytest.mark.wings  # emulators of storage
pytest.importorskip("pyarrow.fs", reason="needs the extra 'cloud'")
pytest.importorskip("fsspec", reason="needs the extra 'cloud'")

ENDINGS = [form.endings[0] for form in FORMATS]


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("moto", reason="needs the package moto[server]")
    with s3_server() as endpoint:
        make_bucket(endpoint, "bucket")
        yield endpoint


@pytest.fixture(scope="module")
def proxy(server):
    faults = Faults()
    with faulty_proxy(server, faults) as endpoint:
        yield endpoint, faults


@pytest.fixture
def faults(proxy, monkeypatch):
    """Return what the next requests meet; clients reach the server through the proxy."""
    endpoint, faults = proxy
    faults.plan, faults.done, faults.methods = [], [], ("GET", "HEAD", "PUT", "POST")
    with reached_by(environment(endpoint), monkeypatch):
        yield faults


@pytest.fixture
def bucket(faults, request):
    """Return an address of this test's own in a bucket."""
    return f"s3://bucket/{abs(hash(request.node.name))}"


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("scheme", ["s3", "memory"])
def test_every_format_is_written_and_read(scheme, ending, X, request):
    place = request.getfixturevalue("bucket") if scheme == "s3" else "memory://formats"
    columns = None if ending == ".npy" else {"n": np.arange(300)}
    write_vectors(f"{place}/rows{ending}", X, columns)
    table = open_vectors(f"{place}/rows{ending}", "vectors")
    found = table.read()
    assert np.array_equal(found.vectors.astype(np.float32), X)
    assert table.path == f"{place}/rows{ending}"
    if columns:
        assert found.columns["n"].tolist() == list(range(300))


def test_folders_and_patterns_in_the_order_of_numbers(bucket, X):
    for i in range(11):
        write_vectors(f"{bucket}/shards/part-{i}.npy", X[i * 20 : i * 20 + 20])
    write_vectors(f"{bucket}/shards/deep/part-0.npy", X[:5])
    assert np.array_equal(open_vectors(f"{bucket}/shards").read().vectors, X[:220])
    assert open_vectors(f"{bucket}/shards/part-1*.npy").rows == 40
    assert [path.name for path in find_files(f"{bucket}/sh*/part-[12].npy")] == ["part-1.npy", "part-2.npy"]
    assert open_vectors(f"{bucket}/**/part-0.npy").rows == 25
    for wrong in ("nothing.npy", "none/*.npy", "nowhere"):
        with pytest.raises(InvalidInputError, match=f"There is no file '{bucket}/{wrong[:4]}"):
            open_vectors(f"{bucket}/{wrong}")


@pytest.mark.parametrize("fault", ["500", "503", "drop", "cut"])
def test_reading_goes_on_after_failures(fault, bucket, faults, X):
    for method in ("HEAD", "GET"):
        faults.plan = []
        write_vectors(path := f"{bucket}/{method}.parquet", X)  # each anew: what was read is not asked for again
        faults.plan, faults.methods = [fault, fault, fault], (method,)
        assert np.array_equal(open_vectors(path).read().vectors, X)
        assert faults.plan == []


@pytest.mark.parametrize("fault", ["500", "503", "drop"])
def test_writing_goes_on_after_failures(fault, bucket, faults, X):
    for method in ("POST", "PUT"):
        faults.plan, faults.methods = [fault, fault], (method,)
        write_vectors(f"{bucket}/{method}.npy", X)
        assert faults.plan == []
        faults.plan = []
        assert np.array_equal(open_vectors(f"{bucket}/{method}.npy").read().vectors, X)


def test_a_server_that_never_answers_is_an_error_message_without_secrets(bucket, faults, X, monkeypatch):
    write_vectors(f"{bucket}/rows.npy", X)
    monkeypatch.setattr(storage, "ATTEMPTS", 2)
    storage.storage_of.cache_clear()
    faults.plan = ["500"] * 500
    for what in (lambda: open_vectors(f"{bucket}/rows.npy"), lambda: write_vectors(f"{bucket}/new.npy", X)):
        with pytest.raises(InvalidInputError, match=rf"{bucket}.*failed") as caught:
            what()
        assert SECRET not in str(caught.value)
    faults.plan = []
    assert not remote.place_of(f"{bucket}/new.npy").exists()


def test_a_failed_write_leaves_the_old_file(bucket, faults, X, monkeypatch):
    write_vectors(f"{bucket}/rows.npy", X)
    monkeypatch.setattr(storage, "ATTEMPTS", 1)
    storage.storage_of.cache_clear()
    faults.methods, faults.plan = ("PUT",), ["500"] * 500
    with pytest.raises(InvalidInputError, match="Nothing was left half-written"):
        write_vectors(f"{bucket}/rows.npy", X[:5])
    faults.plan = []
    assert np.array_equal(open_vectors(f"{bucket}/rows.npy").read().vectors, X)


def test_a_file_that_changes_while_it_is_read_raises(bucket, X):
    write_vectors(f"{bucket}/rows.npy", X)
    batches = open_vectors(f"{bucket}/rows.npy").batches(100)
    next(batches)
    write_vectors(f"{bucket}/rows.npy", X + 1)  # of the same size
    with pytest.raises(InvalidInputError, match="was changed while it was read"):
        next(batches)


def test_ranges_are_read_and_not_all_of_a_file(bucket, faults, X):
    rows = np.tile(X, (1500, 1))  # 10.8 MB
    write_vectors(f"{bucket}/rows.npy", rows)
    table = open_vectors(f"{bucket}/rows.npy")
    faults.done.clear()
    piece = table.shards[0].piece(400_000, 400_010)
    assert np.array_equal(piece, rows[400_000:400_010])
    assert sum(one.startswith("GET") for one in faults.done) <= 3


def test_a_folder_of_codes_appears_when_it_is_complete(bucket, X):
    encoder = PrefixEncoder(3).fit(X).encoder_
    for i in range(3):
        write_vectors(f"{bucket}/in/{i}.npy", X[i * 100 : i * 100 + 100])
    outcome = transform_files(encoder, f"{bucket}/in", f"{bucket}/out", k=2)
    assert (outcome.rows, outcome.files, outcome.path) == (300, 3, f"{bucket}/out")
    assert np.allclose(open_vectors(f"{bucket}/out").read().vectors, encoder.encode(X, 2), atol=1e-5)
    assert transform_files(encoder, f"{bucket}/in", f"{bucket}/out", k=2, resume=True).finished_before == 3
    # One that is being moved to its name has its record still under the other.
    done, partial = remote.place_of(f"{bucket}/out"), remote.place_of(f"{bucket}/out.partial")
    done.storage.move((done / "_firstk.json").key, (partial / "_firstk.json").key)
    with pytest.raises(InvalidInputError, match="not complete yet"):
        open_vectors(f"{bucket}/out")
    assert transform_files(encoder, f"{bucket}/in", f"{bucket}/out", k=2, resume=True).finished_before == 3
    assert open_vectors(f"{bucket}/out").rows == 300


def test_commands_take_addresses(bucket, X, tmp_path):
    write_vectors(f"{bucket}/rows.parquet", X, {"label": (X[:, 0] > 0).astype(int)})
    PrefixEncoder(3).fit(X).save(tmp_path / "model")
    run = firstk("transform", "model", f"{bucket}/rows.parquet", "-k", "2", "-o", f"{bucket}/short.npz", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert f"written to {bucket}/short.npz" in run.stdout
    run = firstk("transform", "model", f"{bucket}/rows.parquet", "-k", "2", "-o", f"{bucket}/short.npz", cwd=tmp_path)
    assert "there already" in run.stderr
    run = firstk("info", f"{bucket}/short.npz", cwd=tmp_path)
    assert f"{bucket}/short.npz holds 300 document codes" in run.stdout, run.stderr
    write_vectors(f"{bucket}/labels.npy", (np.arange(300) % 3)[:, None])
    run = firstk("curve", "model", f"{bucket}/rows.parquet", "--label", "label", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert SECRET not in run.stdout


def test_a_move_to_object_storage_and_back(bucket, X, tmp_path):
    pytest.importorskip("sqlite_vec", reason="needs the extra 'stores'")
    from firstk.search.moving import Recode, move

    write_vectors(f"{bucket}/rows.parquet", X, {"id": np.arange(300), "n": np.arange(300) / 7})
    encoder = PrefixEncoder(3).fit(X)
    store = f"sqlite:{tmp_path}/codes.db#codes"
    assert move(f"{bucket}/rows.parquet", store, Recode(encoder, k=2)).verified
    for target in (f"{bucket}/moved.parquet", f"{bucket}/moved"):
        assert move(store, target).verified
        assert open_vectors(target).rows == 300
    assert [path.name for path in remote.place_of(bucket).iterdir()] == ["moved.parquet", "rows.parquet"]


def test_a_move_between_files_reads_the_whole_address(X, tmp_path):
    from firstk.search.moving import Recode, move

    source = "memory://user:word@place/rows.parquet"  # as a URL that works only with its signature
    write_vectors(source, X, {"n": np.arange(300)})
    moved = move(source, tmp_path / "out.parquet", Recode(PrefixEncoder(3).fit(X)))
    assert (moved.rows, moved.k) == (300, 3)
    assert "word" not in str(moved)


def test_secrets_are_in_no_message_and_no_file(bucket, X, tmp_path):
    address = "https://me:s3cret@127.0.0.1:1/rows.npy?X-Amz-Signature=s3cret"
    run = firstk("transform", "raw", address, "-o", str(tmp_path / "out.npz"))
    assert run.returncode == 1
    assert "'https://127.0.0.1:1/rows.npy'" in run.stderr
    assert "s3cret" not in run.stderr + run.stdout
    write_vectors(f"{bucket}/in/a.npy", X)
    transform_files(None, f"{bucket}/in", str(tmp_path / "out"), k=2)
    write_vectors(tmp_path / "in" / "a.npy", X)
    transform_files(None, str(tmp_path / "in"), f"{bucket}/out", k=2)
    for path in (tmp_path / "out" / "_firstk.json", remote.place_of(f"{bucket}/out/_firstk.json")):
        assert SECRET not in path.read_text()
        assert "testing-key" not in path.read_text()


def test_files_on_the_web_are_read_by_ranges_and_not_written(server, X, faults, monkeypatch):
    """The S3 server answers anybody for a public bucket, by plain HTTP."""
    write_vectors("s3://bucket/web/rows.npy", X)
    address = f"{server}/bucket/web/rows.npy"
    assert np.array_equal(open_vectors(address).read().vectors, X)
    with pytest.raises(InvalidInputError, match="only read"):
        write_vectors(f"{server}/bucket/web/other.npy", X)
    with pytest.raises(InvalidInputError, match="There is no file"):
        open_vectors(f"{server}/bucket/web/nothing.npy")


@pytest.mark.parametrize("fault", ["500", "503", "drop", "cut"])
def test_files_on_the_web_are_asked_for_again_after_failures(fault, proxy, faults, X):
    write_vectors(f"s3://bucket/web/{fault}.npy", X)
    # fsspec asks for a file by HEAD and then by GET, and says of any failure that there is none.
    faults.plan, faults.methods = [fault] * 4, ("GET",) if fault == "cut" else ("GET", "HEAD")
    assert np.array_equal(open_vectors(f"{proxy[0]}/bucket/web/{fault}.npy").read().vectors, X)
    assert faults.plan == []


def test_a_web_server_that_fails_is_no_missing_file(proxy, faults, monkeypatch):
    monkeypatch.setattr(range_file, "ATTEMPTS", 2)
    faults.plan = ["500"] * 8
    with pytest.raises(InvalidInputError, match=r"Cannot read '.*rows\.npy': .*500"):
        open_vectors(f"{proxy[0]}/bucket/rows.npy")
    assert len(faults.plan) == 4  # two attempts, each by HEAD and by GET
    with pytest.raises(InvalidInputError, match=r"Cannot read 'http://127.0.0.1:1/rows\.npy': .*[Cc]onnect"):
        open_vectors("http://127.0.0.1:1/rows.npy")


def test_a_killed_write_leaves_nothing(server, bucket):
    """SIGKILL while parts are uploaded: the name does not appear."""
    faults = Faults(methods=("PUT",))
    with faulty_proxy(server, faults) as endpoint:
        code = (
            "import numpy as np\nfrom firstk.data.files import write_vectors\nprint('begin', flush=True)\n"
            f"write_vectors('{bucket}/large.npy', np.zeros((600_000, 16), np.float32))"
        )
        run = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, env=worker_environment(endpoint), text=True
        )
        assert run.stdout is not None
        run.stdout.readline()
        while not any(one.startswith("PUT") for one in faults.done):
            assert run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.communicate()
    assert not remote.place_of(f"{bucket}/large.npy").exists()


def test_models_and_pages_are_on_this_machine(X, tmp_path):
    PrefixEncoder(3).fit(X).save(tmp_path / "model")
    write_vectors("memory://models/rows.npy", X)
    for arguments in (
        ["fit", "memory://models/rows.npy", "-o", "memory://models/model"],
        ["transform", "memory://models/model", "memory://models/rows.npy", "-o", "out.npz"],
        ["export", "model", "--to", "numpy", "-o", "memory://models/code.py"],
        ["report", "model", "-o", "memory://models/report.html"],
    ):
        run = firstk(*arguments, cwd=tmp_path)
        assert run.returncode == 1
        assert "is an address, and this must be on this machine" in run.stderr
    with pytest.raises(InvalidInputError, match="on this machine"):
        PrefixEncoder(3).fit(X).save("s3://bucket/model")
    with pytest.raises(InvalidInputError, match="on this machine"):
        PrefixEncoder.load("s3://bucket/model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize(("scheme", "package"), [("s3", "pyarrow.fs"), ("hf", "huggingface_hub"), ("memory", "fsspec")])
def test_a_missing_package_is_named_with_its_extra(scheme, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    storage.storage_of.cache_clear()
    with pytest.raises(MissingExtraError, match=r"firstk\[cloud\]"):
        open_vectors(f"{scheme}://somewhere/rows.npy")
    storage.storage_of.cache_clear()


def test_the_account_of_azure_is_asked_for(monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)
    storage.storage_of.cache_clear()
    with pytest.raises(InvalidInputError, match="AZURE_STORAGE_ACCOUNT"):
        open_vectors("az://container/rows.npy")


@pytest.mark.parametrize(
    ("variables", "credential"),
    [
        ({}, {}),
        ({"KEY": "a2V5", "SAS_TOKEN": "sig=1"}, {"account_key": "a2V5"}),
        ({"SAS_TOKEN": "sig=1"}, {"sas_token": "sig=1"}),
        ({"KEY": "a2V5", "CONNECTION_STRING": "SharedAccessSignature=sv=2&sig=3"}, {"sas_token": "sv=2&sig=3"}),
    ],
)
def test_azure_gets_one_credential(variables, credential, monkeypatch):
    """Which pyarrow requires; of a connection string before variables, and no argument that an older pyarrow lacks."""
    given = []
    for name in ("KEY", "SAS_TOKEN", "CONNECTION_STRING"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    for name, value in ({"ACCOUNT": "name"} | variables).items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    storage._azure(SimpleNamespace(AzureFileSystem=lambda **settings: given.append(settings)), "az")
    assert given == [{"account_name": "name"} | credential]


def test_a_base_install_imports_none_of_it():
    code = (
        "import sys, firstk\nfrom firstk.data.files import open_vectors\n"
        "print([name for name in ('fsspec', 'pyarrow', 'aiohttp', 'boto3', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
