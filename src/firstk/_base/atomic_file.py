"""Atomic writes: a file or folder is written under a temporary name beside its own, then renamed.

Every file and model folder that firstk writes goes through here. What a killed process left behind is removed by the
next one that writes the same file or folder, which is why temporary names hold the machine and the process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from firstk.exceptions import InvalidInputError

# Endings of temporary names: what is being written, and an old folder that is being replaced.
_PARTIAL, _OLD = ".partial", ".old"
_ATTEMPTS = 20
# By which the folder of a saved model is known, complete or damaged.
_MODEL_FILE, _MODEL_MARKS = "config.json", (b'"firstk-encoder"', b'"firstk-alignment"')


@contextlib.contextmanager
def atomic_file(
    path: str | os.PathLike[str], what: str, *, kinds: Collection[str] = (), durable: bool = False
) -> Iterator[Path]:
    """Yield an empty temporary file to write; it replaces `path` when the block ends well, and is removed otherwise.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is made where it is missing, an existing file is replaced. A file of a saved
        model is not, and nothing is put beside it.
    what : str
        What an error message calls the file, such as "An ONNX model".
    kinds : collection of str
        Endings of files that may be replaced; any if empty.
    durable : bool
        Wait until the new file is on the disk before the old one is replaced: for files that a power cut must not cost.
    """
    with explained_os_errors(path):
        target = Path(path).resolve()  # a link stays a link: what it points to is replaced
        if target.is_dir():
            raise InvalidInputError(f"{what} is a file, and '{path}' is a folder. Name a file in it.")
        # Raise InvalidInputError if a saved model, or a file of another kind, would be overwritten.
        if _is_model(target.parent):
            raise InvalidInputError(
                f"'{path}' lies in the folder of a saved model, which holds nothing else. Name another file."
            )
        if kinds and target.exists() and target.suffix.lower() not in kinds:
            raise InvalidInputError(
                f"'{path}' is there already, and does not end in {' or '.join(kinds)}: {what[0].lower()}{what[1:]} "
                "would destroy it. Name another file."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        temporary = _new(target, _new_file)
        try:
            yield temporary
            if durable:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            os.replace(temporary, target)
            if durable:
                _sync_folder(target.parent)
        finally:
            with contextlib.suppress(OSError):  # why the file could not be written is in the error already
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty temporary folder to fill; it replaces `target` when the block ends well, and is removed otherwise.

    An old folder is deleted with all that is in it: the caller has checked that it may be. OSError passes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    restore(target)
    _sweep(target)
    temporary = _new(target, os.mkdir)  # its mode is the umask's affair
    try:
        yield temporary
        _sync_folder(temporary)
        _swap(temporary, target)
        _sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after an exchange, this is the old folder


def write_new(path: Path, payload: bytes) -> None:
    """Write a file that is not there yet, and wait until it is on the disk."""
    with path.open("xb") as file:
        file.write(payload)
        file.flush()
        os.fsync(file.fileno())


def check_folder(folder: Path) -> None:
    """Make a folder and check that files can be written into it, before long work rather than hours after its start."""
    with explained_os_errors(folder):  # around the check, too: a locked folder does not even tell what is in it
        there = next((part for part in (folder, *folder.parents) if part.exists() and not part.is_dir()), None)
        if there is not None:
            raise InvalidInputError(f"Cannot write into '{folder}': '{there}' is a file. Choose another place.")
        folder.mkdir(parents=True, exist_ok=True)
        # Rights alone do not tell: a disk is full or read-only, and root may do everything. A file does.
        with tempfile.TemporaryFile(dir=folder):
            pass


def check_new(path: Any, *, force: bool, model: bool = False) -> None:
    """Raise InvalidInputError if a file (or, for a model, a saved model) is there already and may not be replaced.

    For commands, before their work starts. What `force` cannot replace has error messages of its own; None is what is
    not to be written.
    """
    if path is None or force:
        return
    place = Path(path).expanduser() if isinstance(path, str) else path.expanduser()
    with explained_os_errors(str(path)):
        if _is_model(place) if model else place.is_file():
            raise InvalidInputError(
                f"'{path}' is there already. Pass force=True to replace it, or choose another name."
            )


def _is_model(folder: Path) -> bool:
    """Tell whether a folder is a saved model, complete or damaged."""
    config = folder / _MODEL_FILE
    if not config.is_file():
        return False
    held = config.read_bytes()
    return any(mark in held for mark in _MODEL_MARKS)


@contextlib.contextmanager
def explained_os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into an error message with a way out."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "there is no space left on the device" if full else (error.strerror or str(error)).rstrip(".")
        raise InvalidInputError(
            f"Cannot write '{path}': {why}. Nothing was left half-written; choose another place."
        ) from None


# -- temporary names -------------------------------------------------------------------------------------------------


def _stem(target: Path) -> str:
    """Return how temporary names of a target on this machine begin: short, as its own name may be near the limit."""
    return f".firstk-{zlib.crc32(os.fsencode(target.name)):08x}-{_process_space()}-"


@lru_cache(maxsize=1)
def _process_space() -> str:
    """Return where process numbers mean the same: this host and, in a container, its own numbering."""
    with contextlib.suppress(OSError):
        return f"{platform.node()}-{os.stat('/proc/self/ns/pid').st_ino}"
    return platform.node()


def _free_name(target: Path, ending: str) -> Path:
    """Return a name that nobody can guess, in the same folder, because only there is a rename one step."""
    return target.parent / f"{_stem(target)}{os.getpid()}-{secrets.token_hex(8)}{ending}"


def _new(target: Path, make: Callable[[Path], object]) -> Path:
    """Make a temporary file or folder that was not there before."""
    for _ in range(_ATTEMPTS):
        temporary = _free_name(target, _PARTIAL)
        with contextlib.suppress(FileExistsError):
            make(temporary)
            return temporary
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _new_file(path: Path) -> None:
    """Make an empty file; a link of that name is neither followed nor replaced."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(path, flags, 0o666))  # less what the umask takes away


def _left_behind(target: Path, ending: str) -> Iterator[tuple[Path, bool]]:
    """Yield what processes of this machine have beside `target` for now, and whether the process is alive."""
    stem = _stem(target)
    # Names, not paths: a folder may hold thousands of shards, and this is asked for each.
    for name in os.listdir(target.parent):
        number, dash, token = name.removeprefix(stem).partition("-")
        # Two parts exactly: the name of another host may begin with that of this one.
        if name.startswith(stem) and ending in name and dash and number.isdecimal() and "-" not in token:
            yield target.parent / name, _alive(int(number))


def _sweep(target: Path) -> None:
    """Remove temporary files and folders of `target` whose process is gone, and files beside them."""
    with contextlib.suppress(OSError):
        endings = (_PARTIAL, _OLD) if os.path.lexists(target) else (_PARTIAL,)  # an old folder may be all there is
        for path in [path for ending in endings for path, alive in _left_behind(target, ending) if not alive]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is Ctrl-C, and not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Ask that names in a folder reach the disk; not every file system can."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


# -- folders change places -------------------------------------------------------------------------------------------


def _swap(new: Path, target: Path) -> None:
    """Put the folder `new` where `target` is: in one step where the system has one, else in two renames."""
    for _ in range(_ATTEMPTS):
        if _renamed(new, target) or _exchange(new, target):
            return
        old = _free_name(target, _OLD)
        try:
            os.rename(target, old)
        except FileNotFoundError:  # another process is between its own renames
            continue
        try:
            done = _renamed(new, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
        if done:  # else another process was quicker: what it put there is replaced in the next round
            return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _renamed(new: Path, target: Path) -> bool:
    """Rename a folder unless another that is not empty has the name; tell whether it was done."""
    try:
        os.rename(new, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _exchange(a: Path, b: Path) -> bool:
    """Let two folders change names in one step; False where the system or the file system cannot."""
    import ctypes

    call = _renameat2()
    if call is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    if call(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.ENOENT, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code))


@cache
def _renameat2() -> Callable[..., int] | None:
    """Return Linux's own rename, or None elsewhere."""
    import ctypes
    import sys

    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call


def restore(target: Path) -> None:
    """Put back the old folder, where a process was killed between its two renames and `target` is missing."""
    with contextlib.suppress(OSError):
        if not os.path.lexists(target):
            for old, alive in list(_left_behind(target, _OLD)):
                if not alive:
                    os.rename(old, target)
                    return


def current(folder: Path) -> Path:
    """Return where the content of `folder` is to be read: beside it, while it is between two renames."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # no such place, no such name, a loop of links
        if not folder.exists():
            target = folder.resolve()
            restore(target)
            if not target.exists():
                return next((old for old, _ in _left_behind(target, _OLD)), folder)
    return folder


def beside(path: Any, ending: str) -> Any:
    """Return a path with `ending` after its name; '.' and '..' have none of their own, and get the folder's.

    Examples
    --------
    >>> beside(Path("out"), ".partial").name
    'out.partial'
    """
    named = path if path.name not in ("", "..") else path.resolve()
    return named.parent / f"{named.name}{ending}"
