"""Sharing in the layout of Hugging Face: offline from folders and its cache; the network is replaced at its edge."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import CorruptModelError, InvalidInputError, MissingExtraError

X = np.random.default_rng(0).standard_normal((40, 5))
ENC = PrefixEncoder(3).fit(X)


@pytest.fixture
def hub(monkeypatch):
    """Return the hub's library, in offline mode: nothing here may reach for the network."""
    module = pytest.importorskip("huggingface_hub", reason="needs the extra 'hub'")
    for part in ("constants", "errors"):  # parts of it are loaded when they are first asked for
        importlib.import_module(f"huggingface_hub.{part}")
    monkeypatch.setattr(module.constants, "HF_HUB_OFFLINE", True)
    return module


def test_a_folder_needs_no_hub(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    folder = ENC.save_pretrained(tmp_path / "model", source_model="some/model")
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    for path in (folder, str(folder)):
        np.testing.assert_array_equal(PrefixEncoder.from_pretrained(path).transform(X), ENC.transform(X))


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"firstk\[hub\]"):
        PrefixEncoder.from_pretrained("someone/short")
    with pytest.raises(MissingExtraError, match=r"firstk\[hub\]"):
        ENC.push_to_hub("someone/short")


@pytest.mark.parametrize("name", ["/no/such/folder", "./missing", "../x", "a/b/c", "a\0b", 7, None, Path("x/y"), "ü/x"])
def test_what_is_neither_folder_nor_repository(name):
    with pytest.raises(InvalidInputError, match=r"folder"):
        PrefixEncoder.from_pretrained(name)


def cached(cache, repo="someone/short", commit="c" * 40):
    """Lay a saved model out as the hub's cache does: blobs, and a snapshot of links to them."""
    root = cache / f"models--{repo.replace('/', '--')}"
    saved, snapshot = ENC.save(cache / "saved"), root / "snapshots" / commit
    for folder in (root / "blobs", root / "refs", snapshot):
        folder.mkdir(parents=True)
    (root / "refs" / "main").write_text(commit)
    for number, file in enumerate(sorted(saved.iterdir())):
        blob = root / "blobs" / f"{number:040d}"
        blob.write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / blob.name)
    return snapshot


def test_the_hubs_cache_is_read_without_a_network(hub, tmp_path):
    cached(tmp_path)
    back = PrefixEncoder.from_pretrained("someone/short", cache_dir=tmp_path, local_files_only=True)
    np.testing.assert_array_equal(back.transform(X), ENC.transform(X))


def test_a_damaged_cache_raises_an_error(hub, tmp_path):
    snapshot = cached(tmp_path)
    blob = (snapshot / "model.safetensors").resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    with pytest.raises(CorruptModelError, match="does not match the checksum"):
        PrefixEncoder.from_pretrained("someone/short", cache_dir=tmp_path, local_files_only=True)


def test_offline_and_not_in_the_cache_raises_an_error(hub, tmp_path):
    with pytest.raises(InvalidInputError, match=r"no such folder here.*nothing can be reached.*copy the folder"):
        PrefixEncoder.from_pretrained("someone/short", cache_dir=tmp_path, local_files_only=True)


def test_only_the_files_of_a_model_are_asked_for(hub, tmp_path, monkeypatch):
    asked = {}

    def download(**options):
        asked.update(options)
        return str(ENC.save(tmp_path / "model"))

    monkeypatch.setattr(hub, "snapshot_download", download)
    back = PrefixEncoder.from_pretrained("someone/short", revision="v1", token="t")
    assert back.n_components_ == 3
    assert asked.pop("allow_patterns") == ["config.json", "model.safetensors", "README.md"]
    assert asked == {
        "repo_id": "someone/short",
        "revision": "v1",
        "token": "t",
        "cache_dir": None,
        "local_files_only": False,
    }


class Answer:
    """What a server said."""

    def __init__(self, status):
        self.status_code, self.headers, self.request = status, {}, None


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (lambda e: e.RepositoryNotFoundError("no", response=Answer(404)), "the answer was 404. Check the name"),
        (lambda e: e.GatedRepoError("no", response=Answer(403)), "403.*a private repository needs a token"),
        (lambda e: e.LocalEntryNotFoundError("no"), "nothing can be reached"),
        (lambda e: e.HFValidationError("bad name"), "cannot have this name"),
        (lambda e: ConnectionError("refused"), "ConnectionError: refused"),
        (lambda e: RuntimeError("odd"), "RuntimeError: odd"),
    ],
)
def test_failures_of_the_hub_raise_errors(hub, monkeypatch, failure, message):
    def fail(**options):
        raise failure(hub.errors)

    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(InvalidInputError, match=message):
        PrefixEncoder.from_pretrained("someone/short")


class Recorder:
    """The hub's API, which writes down what is asked of it."""

    calls: list = []  # noqa: RUF012

    def __init__(self, token=None):
        self.calls.append(("token", token))

    def create_repo(self, **options):
        self.calls.append(("create", options))
        return "https://huggingface.co/someone/short"

    def upload_folder(self, folder_path, **options):
        files = {file.name: file.read_bytes() for file in Path(folder_path).iterdir()}
        self.calls.append(("upload", options, files))


def test_push_to_hub_uploads_a_saved_model(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "HfApi", Recorder)
    monkeypatch.setattr(Recorder, "calls", [])
    assert ENC.push_to_hub("someone/short", private=True, token="t") == "https://huggingface.co/someone/short"
    token, create, (_, options, files) = Recorder.calls
    assert token == ("token", "t")
    assert create == ("create", {"repo_id": "someone/short", "private": True, "exist_ok": True})
    assert options == {"repo_id": "someone/short", "commit_message": "Save a firstk encoder"}
    for name, payload in files.items():
        (tmp_path / name).write_bytes(payload)
    np.testing.assert_array_equal(PrefixEncoder.load(tmp_path).transform(X), ENC.transform(X))
