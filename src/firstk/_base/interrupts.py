"""Signals that end long work: the first becomes a flag, so that the work can stop where its state is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible(*signals: signal.Signals) -> Iterator[threading.Event]:
    """Turn the first of these signals (SIGINT, if none is named) into a flag; a second one does what it always did.

    Only the main thread hears signals; elsewhere the flag stays down.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {each: signal.getsignal(each) for each in signals or (signal.SIGINT,)}

    def give_back() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def note(*_: Any) -> None:
        flag.set()
        give_back()

    for each in before:
        signal.signal(each, note)
    try:
        yield flag
    finally:
        give_back()
