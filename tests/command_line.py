"""Run the command line in the process of the tests: a process a command would spend its time on imports."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys

import pytest

from firstk.cli import main


def firstk(*arguments, cwd=".") -> subprocess.CompletedProcess:
    """Return what ``firstk`` prints in that folder and its exit code, as subprocess.run() does."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    terminated = signal.getsignal(signal.SIGTERM)
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["firstk", *map(str, arguments)])
        patch.setattr(sys, "unraisablehook", sys.unraisablehook)  # main() sets its own: this one comes back
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            signal.signal(signal.SIGTERM, terminated)
    return subprocess.CompletedProcess(arguments, int(code), out.getvalue(), err.getvalue())
