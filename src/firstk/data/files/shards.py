"""A folder of shards that is written one by one: which are finished, and of what job.

The folder has another name until its last shard is there, so that whoever finds it under its own name finds all of it.
A record beside the shards says what was asked for; a run that goes on checks that it was asked for the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstk._base.atomic_file import beside, explained_os_errors
from firstk._base.input_file import Stamp, check_regular
from firstk._base.json_records import strict_json
from firstk.data.remote import RemotePath, written
from firstk.exceptions import InvalidInputError

RECORD = "_firstk.json"
UNFINISHED = ".partial"


@dataclass
class ShardLog:
    """The record of a folder.

    Attributes
    ----------
    target : Path
        What the folder will be called.
    job : mapping
        What was asked for, as JSON.
    learned : mapping
        What the first run took from the data, which all shards share.
    done : dict
        Finished inputs by name: their size and time, and the size of what was written.
    """

    target: Path
    job: Mapping[str, object]
    learned: Mapping[str, object] = field(default_factory=dict)
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    complete: bool = False

    @classmethod
    def begin(cls, target: Path, job: Mapping[str, object], *, resume: bool) -> ShardLog:
        """Start a folder, or go on with one; raise InvalidInputError for one of another job, or one in the way."""
        log = cls(target, job)
        if isinstance(target, Path) and log.temporary.is_symlink():
            raise InvalidInputError(f"'{log.temporary}' is a link, and a new folder is needed there. Remove it.")
        places = [(log.target, True), (log.temporary, False)]
        if isinstance(target, RemotePath) and (log.temporary / RECORD).is_file():
            places.reverse()  # files are moved one by one, and the record last
        for folder, complete in places:
            if not folder.exists() or (folder.is_dir() and not _names(folder, hidden=complete)):
                continue
            if not resume or not folder.is_dir():
                way_out = "Go on with it by resume=True, or remove it" if not complete else "Choose another name"
                raise InvalidInputError(f"'{folder}' is there already. {way_out}.")
            try:
                check_regular(folder / RECORD)
                held = strict_json((folder / RECORD).read_bytes())
                before, learned, done = held["job"], held["learned"], held["done"]
                if not all(isinstance(part, dict) for part in (before, learned, done, *done.values())):
                    raise TypeError
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                raise InvalidInputError(
                    f"'{folder}' has no readable {RECORD}, so it is not known what its files are. Remove it, or choose "
                    "another name."
                ) from None
            asked = json.loads(json.dumps(job))
            for key in asked:
                if before.get(key) != asked[key]:
                    raise InvalidInputError(
                        f"'{folder}' was written for another job: {key} was {before.get(key)!r} and is now "
                        f"{asked[key]!r}. Choose another name, or remove it."
                    )
            return cls(target, job, learned, done, complete)
        return log

    @property
    def temporary(self) -> Path:
        """Return the name of the folder until it is complete."""
        return beside(self.target, UNFINISHED)

    @property
    def folder(self) -> Path:
        """Return where the shards are."""
        return self.target if self.complete else self.temporary

    def finished(self, name: str, source: Stamp) -> bool:
        """Tell whether the shard of a source, as it is now, is there."""
        entry = self.done.get(name)
        if entry is None or entry.get("source") != [source.size, source.modified]:
            return False
        written = entry.get("bytes")
        place = self.folder / name
        if isinstance(place, RemotePath) and not place.is_file():
            place = self.target / name  # moved there before an interruption
        return written is None or (place.is_file() and Stamp.of(place).size == written)

    def add(self, name: str, source: Stamp, rows: int) -> None:
        """Note a shard as finished; one without rows has no file."""
        place = self.folder / name
        size = Stamp.of(place).size if rows else None
        self.done[name] = {"source": [source.size, source.modified], "bytes": size, "rows": rows}
        self.write()

    def write(self) -> None:
        """Write the record in one atomic step."""
        text = json.dumps({"job": self.job, "learned": self.learned, "done": self.done}, indent=1)
        with written(self.folder / RECORD, "The record of a folder") as temporary:
            temporary.write_text(text, encoding="utf-8")

    def finish(self) -> None:
        """Give the folder its name."""
        if not self.complete:
            with explained_os_errors(self.target):
                if isinstance(self.target, RemotePath):
                    self.temporary.rename_files(self.target, RECORD)
                    self.complete = True
                    return
                if self.target.exists():
                    self.target.rmdir()  # it was empty
                os.replace(self.temporary, self.target)
            self.complete = True


def shard_names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, or with its folders where two have the same."""
    names = [path.name for path in paths]
    if len(set(names)) == len(names):
        return names
    if isinstance(paths[0], RemotePath):
        keys = [path.key.split("/") for path in paths]
        same = os.path.commonpath([path.parent.key for path in paths]).count("/") + 1
        return ["-".join(key[same:]) for key in keys]
    root = os.path.commonpath([path.resolve().parent for path in paths])
    return ["-".join(path.resolve().relative_to(root).parts) for path in paths]


def _names(folder: Path, *, hidden: bool) -> list[str]:
    """Return the names in a folder; without `hidden`, not those of temporary files."""
    return [name for name in (path.name for path in folder.iterdir()) if hidden or not name.startswith(".")]
