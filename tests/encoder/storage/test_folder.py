"""A model on disk: what is in the folder, that it is written whole, and that nothing else is ever read as a model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from firstk import FittedEncoder, PrefixCurve, PrefixEncoder
from firstk.encoder.storage.folder import read_extra, read_extra_bytes, read_manifest, read_model, write_model
from firstk.exceptions import CorruptModelError, InvalidInputError
from sealing import seal

ARRAYS = {"a": np.arange(6.0).reshape(2, 3)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 5)) * [5, 4, 3, 2, 1], np.arange(60) % 3


@pytest.fixture(scope="module")
def fisher(rows):
    return PrefixEncoder(objective="fisher").fit(*rows)


# -- extra files ---------------------------------------------------------------------------------------------------


def test_extra_files_are_saved_and_read(fisher, tmp_path):
    texts = {"study.json": '{"title": "Größe"}', "notes.txt": ""}
    fisher.save(tmp_path / "model", extra=texts)
    assert {name: read_extra(tmp_path / "model", name) for name in texts} == texts
    assert read_extra(tmp_path / "model", "other.json") is None
    PrefixEncoder.load(tmp_path / "model")


def test_a_model_with_extra_files_can_be_replaced(fisher, tmp_path):
    fisher.save(tmp_path / "model", extra={"study.json": "{}"})
    fisher.save(tmp_path / "model")
    assert not (tmp_path / "model" / "study.json").exists()
    assert read_extra(tmp_path / "model", "study.json") is None


def test_a_changed_extra_file_raises_an_error_and_the_encoder_is_not(fisher, tmp_path):
    model = fisher.save(tmp_path / "model", extra={"study.json": "{}"})
    (model / "study.json").write_text("[]")
    with pytest.raises(CorruptModelError, match=r"study.json' does not match the checksum in config.json"):
        read_extra(model, "study.json")
    (model / "study.json").unlink()
    with pytest.raises(CorruptModelError, match=r"no readable study.json: the model is incomplete"):
        read_extra(model, "study.json")
    PrefixEncoder.load(model)  # needs none of it


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/b", "a\\b", "", ".hidden", "..", "config.json", "CONFIG.JSON", "readme.md", "model.safetensors",
     "a\0b", "x" * 200, "naïve", "a\n", 3, None],
)  # fmt: skip
def test_extra_files_have_plain_names(fisher, tmp_path, name):
    with pytest.raises(InvalidInputError, match="plain name"):
        fisher.save(tmp_path / "model", extra={name: "text"})
    assert list(tmp_path.iterdir()) == []
    model = fisher.save(tmp_path / "model")
    with pytest.raises(InvalidInputError, match="plain name"):
        read_extra(model, name)


def test_extra_files_may_be_bytes(fisher, tmp_path):
    model = fisher.save(tmp_path / "model", extra={"some.bin": b"\xff\x00"})
    assert read_extra_bytes(model, "some.bin") == b"\xff\x00"
    assert read_extra_bytes(model, "other.bin") is None
    with pytest.raises(CorruptModelError, match="is not text"):
        read_extra(model, "some.bin")


@pytest.mark.parametrize("text", [None, 3, "\ud800"])
def test_extra_files_are_text_or_bytes(fisher, tmp_path, text):
    with pytest.raises(InvalidInputError, match=r"extra file 'study.json' of a model must be a str"):
        fisher.save(tmp_path / "model", extra={"study.json": text})
    assert list(tmp_path.iterdir()) == []


def test_a_forged_list_of_files_leads_nowhere(fisher, tmp_path):
    model = fisher.save(tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    seal(model, config | {"files": config["files"] | {"../../secret": "0" * 64}})
    with pytest.raises(CorruptModelError, match="does not list its files"):
        PrefixEncoder.load(model)


# -- curve and source ----------------------------------------------------------------------------------------------


def test_curve_and_source_stay_with_the_model(fisher, tmp_path):
    curve = PrefixCurve(k=[1, 2], score=[0.5, 0.9], metric="accuracy")
    fisher.save(tmp_path / "a", curve=curve, source_model="some/model")
    back = PrefixEncoder.load(tmp_path / "a")
    back.save(tmp_path / "b")
    back[:1].save(tmp_path / "c")
    a, b, c = (read_manifest(tmp_path / name).config for name in "abc")
    assert PrefixCurve.from_dict(a["curve"]) == curve
    assert (b["curve"], b["source_model"]) == (a["curve"], "some/model")
    assert c["curve"]["k"] == [1]  # as far as the cut encoder goes
    assert c["d"] == 1


def test_a_loaded_and_cut_encoder_has_a_checksum_of_its_own(fisher, rows, tmp_path):
    cut = PrefixEncoder.load(fisher.save(tmp_path / "a"))[:1]
    back = PrefixEncoder.load(cut.save(tmp_path / "b"))
    np.testing.assert_array_equal(back.transform(rows[0]), fisher.transform(rows[0], k=1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"curve": [0.5, 0.9]}, "'curve' parameter of save must be a PrefixCurve"),
        ({"curve": PrefixCurve([1, 9], [0.1, 0.2], "r2")}, r"a curve of prefixes in \[1, 2\]"),
        ({"source_model": 7}, "the name of a model"),
        ({"source_model": " "}, "the name of a model"),
        ({"source_model": "\ud800"}, "what JSON can hold"),
    ],
)
def test_what_cannot_be_saved_raises_an_error(fisher, tmp_path, given, message):
    with pytest.raises(InvalidInputError, match=message):
        fisher.save(tmp_path / "model", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_only_json_goes_into_config(tmp_path, value):
    with pytest.raises(InvalidInputError, match="what JSON can hold"):
        write_model(tmp_path / "model", {"value": value}, ARRAYS)
    assert list(tmp_path.iterdir()) == []


# -- the file system -----------------------------------------------------------------------------------------------


def test_links_to_files_are_read_as_in_a_cache_of_models(fisher, rows, tmp_path):
    model, blobs = fisher.save(tmp_path / "model"), tmp_path / "blobs"
    blobs.mkdir()
    for file in list(model.iterdir()):
        shutil.move(file, blobs / file.name)
        file.symlink_to(blobs / file.name)
    np.testing.assert_array_equal(PrefixEncoder.load(model).transform(rows[0]), fisher.transform(rows[0]))


def test_a_linked_folder_stays_a_link_when_it_is_saved_over(fisher, tmp_path):
    fisher.save(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fisher[:1].save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert PrefixEncoder.load(tmp_path / "real").n_components_ == 1


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["folder", "broken link", "loop", "pipe", "missing", "empty"])
def test_anything_but_a_file_raises_an_error(fisher, tmp_path, name, kind):
    file = fisher.save(tmp_path / "model") / name
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "broken link":
        file.symlink_to(tmp_path / "nowhere")
    elif kind == "loop":
        file.symlink_to(file)
    elif kind == "pipe":
        os.mkfifo(file)  # reading it would wait for ever
    elif kind == "empty":
        file.touch()
    with pytest.raises(CorruptModelError) as caught:
        PrefixEncoder.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


def test_a_link_to_another_file_is_no_way_to_read_it(fisher, tmp_path):
    model = fisher.save(tmp_path / "model", extra={"study.json": "{}"})
    (tmp_path / "secret").write_text("secret")
    (model / "study.json").unlink()
    (model / "study.json").symlink_to(tmp_path / "secret")
    with pytest.raises(CorruptModelError, match="does not match") as caught:
        read_extra(model, "study.json")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("method", ["read_bytes", "is_file"])
def test_files_that_may_not_be_read_raise_an_error(fisher, tmp_path, monkeypatch, name, method):
    """By hand, because a superuser may read everything."""
    model, original = fisher.save(tmp_path / "model"), getattr(Path, method)

    def forbidden(self):
        if self.name == name:
            raise PermissionError(13, "Permission denied")
        return original(self)

    monkeypatch.setattr(Path, method, forbidden)
    with pytest.raises(CorruptModelError, match=f"{name}' cannot be read: Permission denied"):
        PrefixEncoder.load(model)


@pytest.mark.parametrize("path", ["nowhere", "a\0b", "x" * 5000, ""])
def test_paths_that_lead_nowhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorruptModelError):
        PrefixEncoder.load(path)


@pytest.mark.parametrize(
    ("there", "name", "message"),
    [
        ("taken", "taken", "A model is a folder, and '.*taken' is a file"),
        ("taken", "taken/model", "Cannot write a model to '.*model': '.*taken' is a file"),
        ("model/config.json", "model", "holds something that is not a firstk model"),  # another library's
    ],
)
def test_what_is_there_and_no_model_is_left_alone(fisher, tmp_path, there, name, message):
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text('{"model_type": "bert"}')
    with pytest.raises(InvalidInputError, match=message):
        fisher.save(tmp_path / name)
    assert (tmp_path / there).read_text() == '{"model_type": "bert"}'


def test_a_damaged_model_may_be_replaced_but_not_what_it_lists(fisher, tmp_path):
    model = fisher.save(tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"d": 99}))
    fisher.save(model)
    PrefixEncoder.load(model)
    (model / "thesis.tex").write_text("years of work")
    listed = config | {"files": config["files"] | {"thesis.tex": "0" * 64}}
    (model / "config.json").write_text(json.dumps(listed))  # its digest does not know of the list
    with pytest.raises(InvalidInputError, match="holds something that is not a firstk model"):
        fisher.save(model)
    assert (model / "thesis.tex").read_text() == "years of work"


def test_an_edited_card_is_the_users_own_affair(fisher, tmp_path):
    model = fisher.save(tmp_path / "model")
    (model / "README.md").write_text("mine")
    PrefixEncoder.load(model)
    (model / "README.md").unlink()
    PrefixEncoder.load(model)


def test_white_space_and_order_in_config_mean_nothing(fisher, tmp_path):
    model = fisher.save(tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(dict(reversed(config.items()))))
    PrefixEncoder.load(model)


def test_arrays_come_back_to_the_byte(tmp_path):
    write_model(tmp_path / "model", {"colour": "ä"}, ARRAYS, card="A card.")
    config, arrays = read_model(tmp_path / "model")
    assert config == {"colour": "ä"}
    assert arrays["a"].tobytes() == ARRAYS["a"].tobytes()
    assert (tmp_path / "model" / "README.md").read_text() == "A card."


def test_a_flipped_fact_would_give_other_codes_and_raises(tmp_path, rows):
    """Why config.json has a digest: a fact of the right type that fits the arrays cannot be told to be wrong."""
    X, _ = rows
    model = PrefixEncoder(3, objective="similarity").fit(X).save(tmp_path / "model")
    codes = FittedEncoder.load(model).encode(X)
    config = json.loads((model / "config.json").read_text())
    seal(model, config | {"normalized": not config["normalized"]})
    assert not np.allclose(FittedEncoder.load(model).encode(X), codes)
    (model / "config.json").write_text(json.dumps(config | {"normalized": not config["normalized"]}))
    with pytest.raises(CorruptModelError, match="does not match its own digest"):
        FittedEncoder.load(model)
