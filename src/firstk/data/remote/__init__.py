"""Files in object storage and on the web: names like paths, reading by ranges, messages without credentials.

Buckets of S3, Google and Azure are reached by pyarrow, everything else by fsspec. What these lack is here: a version by
which a file that changed while it was read is noticed, writes that appear at once, and `secrets`. Needs the extra
"cloud".
"""

from firstk.data.remote.path import (
    RemotePath,
    check_local,
    check_there,
    explained_reading,
    is_remote,
    is_there,
    place_of,
    written,
)
from firstk.data.remote.secrets import blotted, shown, shown_place

__all__ = [
    "RemotePath",
    "blotted",
    "check_local",
    "check_there",
    "explained_reading",
    "is_remote",
    "is_there",
    "place_of",
    "shown",
    "shown_place",
    "written",
]
