"""Stamps: written with codes, read off a file, and compared before codes are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.command_line import firstk

from firstk import CodeIndex, FunnelIndex, PrefixEncoder, transform_files
from firstk.data.files import open_codes, write_vectors
from firstk.data.stamp import CodeStamp
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError

X = np.random.default_rng(0).standard_normal((120, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stamps")
    write_vectors(folder / "docs.npz", X)
    for name, rows, source in (("ours", X, "some/minilm"), ("theirs", X[:60], "some/mpnet")):
        PrefixEncoder().fit(rows).save(folder / name, source_model=source)
    return folder


def stamp_of(place, name):
    return FittedEncoder.load(place / name).stamp(4)


@pytest.mark.parametrize("ending", ["npz", "parquet", "arrow", "safetensors"])
def test_every_format_with_metadata_carries_the_stamp(place, ending):
    pytest.importorskip("pyarrow")
    encoder = FittedEncoder.load(place / "ours")
    transform_files(encoder, place / "docs.npz", place / f"short.{ending}", k=4)
    stamp = open_codes(place / f"short.{ending}").record.stamp
    assert stamp == encoder.stamp(4, column="vectors")
    assert (stamp.model, stamp.source) == (encoder.fingerprint(), "some/minilm")
    assert stamp.rows == encoder.record.data_fingerprint


def test_queries_of_another_model_are_an_error_that_names_both(place):
    transform_files(FittedEncoder.load(place / "ours"), place / "docs.npz", place / "like.npz", k=4)
    with pytest.raises(InvalidInputError) as caught:
        transform_files(
            FittedEncoder.load(place / "theirs"), place / "docs.npz", place / "q.npz", like=place / "like.npz"
        )
    for name, source in (("ours", "some/minilm"), ("theirs", "some/mpnet")):
        assert stamp_of(place, name).model[:12] in str(caught.value)
        assert source in str(caught.value)
    done = firstk("transform", "theirs", "docs.npz", "--like", "like.npz", "-o", "q.npz", cwd=place)
    assert done.returncode == 1
    assert "they cannot be compared" in done.stderr


def test_info_reads_it(place):
    transform_files(FittedEncoder.load(place / "ours"), place / "docs.npz", place / "info.npz", k=4)
    done = firstk("info", "info.npz", cwd=place)
    assert f"Made by encoder {stamp_of(place, 'ours').model[:12]} of vectors by some/minilm" in done.stdout
    found = json.loads(firstk("info", "info.npz", "--json", cwd=place).stdout)
    assert found["stamp"]["source"] == "some/minilm"


@pytest.mark.parametrize("found", [None, 3, {"encoder": 3}, {}, ["x"]])
def test_damage_is_told(found):
    with pytest.raises((ValueError, TypeError)):
        CodeStamp.read(found)


def test_one_encoder_cut_at_two_lengths_is_told_apart():
    encoder = PrefixEncoder().fit(X).encoder_
    with pytest.raises(InvalidInputError, match=rf"codes {encoder.fingerprint(3)[:12]}\)"):
        encoder.stamp(4).check(encoder.stamp(3), "a", "b")


def test_a_funnel_of_codes_keeps_its_stamp_and_compares_it(place, tmp_path):
    ours, theirs = stamp_of(place, "ours"), stamp_of(place, "theirs")
    codes = FittedEncoder.load(place / "ours").encode(X, 4)
    index = FunnelIndex.load(FunnelIndex.fit(codes, stamp=ours).save(tmp_path / "index"))
    assert index.stamp == ours
    index.search(codes[:3], stamp=ours)
    index.search(codes[:3])
    with pytest.raises(InvalidInputError, match="these queries were made by encoder"):
        index.search(codes[:3], stamp=theirs)
    with pytest.raises(InvalidInputError, match="these rows were made by encoder"):
        index.add(codes[:3], stamp=theirs)
    with pytest.raises(InvalidInputError, match="Leave one out"):
        FunnelIndex.fit(X, encoder=FittedEncoder.load(place / "ours"), stamp=ours)


def test_an_index_of_bytes_compares_it(place):
    ours, theirs = (FittedEncoder.load(place / name).quantizer(4) for name in ("ours", "theirs"))
    codes = ours.encode(X)
    CodeIndex.from_codes(codes, ours, stamp=ours.stamp(column="vectors"))
    with pytest.raises(InvalidInputError, match="some/mpnet"):
        CodeIndex.from_codes(codes, ours, stamp=theirs.stamp())


def test_a_collection_of_qdrant_keeps_and_compares_it(place):
    qdrant_client = pytest.importorskip("qdrant_client")
    from firstk.search.stores import PrefixStore, Qdrant

    client, ours, theirs = (
        qdrant_client.QdrantClient(":memory:"),
        *(FittedEncoder.load(place / name) for name in ("ours", "theirs")),
    )
    PrefixStore.create(Qdrant(client, "docs", settings={"metadata": {"owner": "me"}}), ours, 4)
    assert client.get_collection("docs").config.metadata["owner"] == "me"
    PrefixStore.open(Qdrant(client, "docs"), ours)
    PrefixStore.open(Qdrant(client, "docs"), ours[:5])  # its first coordinates are the same
    with pytest.raises(InvalidInputError, match=r"collection 'docs'.*some/minilm.*some/mpnet"):
        PrefixStore.open(Qdrant(client, "docs"), theirs)
