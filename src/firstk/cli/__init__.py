"""The command line: one file a command, registered in `app`.

Commands parse and print, and import what they need when they run, so that ``firstk --help`` answers at once. What they
compute lives in `estimator` and `evaluation`.
"""

from firstk.cli.app import app, main

__all__ = ["app", "main"]
