"""The command line: one file a command, registered in `app`.

Commands import what they need when they run, so that ``firstk --help`` answers at once.
"""

from firstk.cli.app import app, main

__all__ = ["app", "main"]
