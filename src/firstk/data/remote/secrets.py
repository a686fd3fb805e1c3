"""Addresses and messages without what is secret in them: users, passwords, tokens, signatures."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from urllib.parse import quote, quote_plus, unquote

# Variables whose values are never shown.
_SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "HF_TOKEN",
)
# How an address begins: SCHEME:// (pathlib takes a slash away) or MotherDuck's md:, after the scheme of a store.
_BEGINNING = re.compile(r"(?:[a-z][\w+.-]+:)?(?:[a-z][a-z0-9+.-]+:/{1,2}|(?:md|motherduck):)", re.IGNORECASE)
# To the last @, past slashes where there is a colon: a password may hold what should have been quoted.
_USER = re.compile(r".*:.*@|[^/?#]*@", re.DOTALL)
# In names of buckets a question mark may be part of a pattern.
_QUERY, _BUCKET_QUERY = re.compile(r"[?#]"), re.compile(r"#|\?[^/?#=&]*[=&]")
_BUCKET = re.compile(r"(?:s3a?|gs|gcs|az|abfss?|hf|memory):/", re.IGNORECASE)
# Pieces of a secret that are shorter are blotted out only where they are a word.
_SHORT = 4


def _parted(address: str) -> tuple[str, list[str]]:
    """Return what of an address may be shown, and what may not."""
    beginning = _BEGINNING.match(address)
    if beginning is None:
        return address, []
    head, rest, hidden = beginning[0], address[beginning.end() :], []
    user = _USER.match(rest)
    if user is not None and _QUERY.search(user[0]):  # a password with a ?, or a query with an @: neither is shown
        return head, [rest]
    if user is not None:
        hidden.append(user[0])
        rest = rest[user.end() :]
    if tail := (_BUCKET_QUERY if _BUCKET.search(head) else _QUERY).search(rest):
        hidden.append(rest[tail.start() :])
        rest = rest[: tail.start()]
    return head + rest, hidden


def shown(address: str) -> str:
    """Return an address of any scheme without user, password, query and fragment.

    Examples
    --------
    >>> shown("https://me:secret@host/rows.npy?X-Amz-Signature=abc")
    'https://host/rows.npy'
    """
    return _parted(address)[0]


def shown_place(path: object) -> str:
    """Return a path for messages and records: an address without its credentials, anything else as it is."""
    return shown(str(path))


def blotted(text: str, address: str = "", secrets: Sequence[str] = ()) -> str:
    """Return a text without secrets, and without what `shown` leaves out of an address.

    Libraries take addresses apart in ways of their own, so each piece between separators is a secret, too, quoted or
    not and in any case.
    """
    kept, hidden = _parted(address)
    text = text.replace(address, kept) if hidden else text
    pieces = {*secrets, *hidden, *(piece for part in hidden for piece in re.split(r"[:@/?&=#;,\s]+", part))}
    pieces |= {form(one) for one in pieces for form in (unquote, quote, quote_plus)}
    for piece in sorted(pieces, key=len, reverse=True):
        if piece.strip(":@/?&=#;, "):
            whole = re.escape(piece)
            text = re.sub(whole if len(piece) >= _SHORT else rf"(?<!\w){whole}(?!\w)", "***", text, flags=re.I)
    return text


def scrubbed(text: str, address: str) -> str:
    """Return what a library says of an address, without credentials of the address or of the environment."""
    held = [os.environ.get(name, "") for name in _SECRETS]
    parts = [one for value in held for one in re.findall(r"(?:AccountKey|SharedAccessSignature)=([^;]+)", value)]
    text = blotted(text, address, [*held, *parts])
    text = re.sub(r"(https?://)[^/?#\s'\"]*@", r"\1", text)  # addresses that a library made of it
    return re.sub(r"\?[^\s'\"]*", "", text)
