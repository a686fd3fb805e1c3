"""No form of an address shows what is secret in it."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstk.data.remote import blotted, shown, shown_place

SCHEMES = ["https", "http", "s3", "gs", "az", "hf", "postgresql", "qdrant+http", "lancedb:s3", "ftp", "chroma+https"]
PLACES = [
    "{scheme}://me:{secret}@host/rows.npy",
    "{scheme}://{secret}:@host/rows.npy",
    "{scheme}:/me:{secret}@host/rows.npy",  # as pathlib writes it
    "{scheme}://me:{secret}@host/rows.npy?a=b@c#d",
    "{scheme}://host/rows.npy?X-Amz-Signature={quoted}",
    "{scheme}://host/rows.npy?sv=1&sig={quoted}",
    "{scheme}://host/rows.npy#{quoted}",
    "duckdb:md:db?motherduck_token={quoted}",
]
# What a password may hold, with the signs that should have been quoted.
secrets = st.text("abcXYZ019@:/?#&=%+ .-", min_size=4, max_size=20).map(lambda text: f"q{text}q")


@given(scheme=st.sampled_from(SCHEMES), place=st.sampled_from(PLACES), secret=secrets)
def test_no_secret_is_shown_wherever_it_is(scheme, place, secret):
    quoted = quote(secret, safe="@:/?#")
    address = place.format(scheme=scheme, secret=secret, quoted=quoted)
    for text in (shown(address), shown_place(address)):
        assert secret not in text
        assert quoted not in text
        assert text.partition(":")[0] == address.partition(":")[0]


def test_an_at_in_a_signature_shows_no_part_of_it():
    assert shown("https://host/rows.npy?X-Amz-Signature=q:@0000q") == "https://"


@given(scheme=st.sampled_from(SCHEMES), place=st.sampled_from(PLACES), secret=secrets, cut=st.integers(0, 10))
def test_what_a_library_says_of_an_address_is_without_its_pieces(scheme, place, secret, cut):
    """A library takes an address apart at signs of its own choice, and names a part."""
    quoted = quote(secret, safe="@:/?#")
    address = place.format(scheme=scheme, secret=secret, quoted=quoted)
    parts = [one for one in secret.replace("/", "@").replace(":", "@").split("@") if len(one) > 4 and one.isalnum()]
    for piece in (secret, quoted, address, *parts):
        if piece in address:
            assert piece not in blotted(f"no host '{piece}' there", address)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("s3://bucket/year=202?/part-?.parquet", "s3://bucket/year=202?/part-?.parquet"),
        ("hf://datasets/me/rows@main/rows.parquet", "hf://datasets/me/rows@main/rows.parquet"),
        ("s3://bucket/rows.npy?X-Amz-Signature=s", "s3://bucket/rows.npy"),
        ("rows?a@b:c.npy", "rows?a@b:c.npy"),
        ("sqlite:/home/me@here/codes.db", "sqlite:/home/me@here/codes.db"),
        ("pairs.tsv:e@mail,other", "pairs.tsv:e@mail,other"),
    ],
)
def test_names_without_secrets_are_shown_whole(address, text):
    assert shown_place(address) == text


def test_a_short_secret_is_blotted_out_where_it_is_a_word():
    assert blotted("host 'x' of max", "ftp://me:x@host") == "host '***' of max"
