"""The documentation site: what it is made from is whole; in full, it is built and looked at in a browser."""

from __future__ import annotations

import ast
import http.server
import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
import tomllib
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks import record

import firstk
from firstk import PrefixEncoder
from firstk.data import load_banking

ROOT = Path(__file__).resolve().parents[2]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
BUILT = DOCS / "_build" / "html"


def loaded(name):
    """Import a script of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site_text = loaded("site_text")


def test_every_page_is_in_the_navigation():
    """A page that no toctree names is not found by turning pages; Sphinx would warn, and warnings are errors."""
    named = {"index"}
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts:
            continue
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text("utf-8"), re.DOTALL):
            named |= {line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")}
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in site_text.pages()}
    assert pages - named == set()
    assert named - pages == {"gallery/index", "api/index"}


@pytest.mark.parametrize("module", site_text.PUBLIC)
def test_every_public_name_has_a_page(module):
    try:
        importlib.import_module(module)
    except ImportError:
        pytest.skip(f"{module} needs an extra")
    names = site_text.public_names(module)
    assert names
    page = {line.strip() for line in site_text.api_page(module).splitlines()}
    top = {line.strip() for line in site_text.api_page("firstk").splitlines()}
    assert set(names) <= page | top
    assert set(site_text.listed(module)) <= page


def names_imported(source):
    """Return the pairs of module and name that a script imports from firstk."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    homes = [node for node in nodes if (node.module or "").partition(".")[0] == "firstk"]
    return {(node.module, alias.name) for node in homes for alias in node.names}


def test_what_pages_and_examples_import_is_in_the_reference():
    scripts = {path.name: [path.read_text("utf-8")] for path in EXAMPLES.glob("*.py")}
    for page in (ROOT / "README.md", *site_text.pages()):
        scripts[page.name] = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    used = {pair: name for name, parts in scripts.items() for part in parts for pair in names_imported(part)}
    assert len(used) > 80
    known = {(module, name) for module in site_text.PUBLIC for name in site_text.public_names(module)}
    packages = {(module.rpartition(".")[0], module.rpartition(".")[2]) for module in site_text.PUBLIC}
    assert {pair: name for pair, name in used.items() if pair not in known | packages} == {}


def test_reference_in_one_file_has_every_name_and_its_docstring():
    text = site_text.api_text()
    for name in firstk.__all__:
        if not name.startswith("_"):
            assert re.search(rf"^## {name}\b", text, re.MULTILINE), name
    assert firstk.PrefixEncoder.__doc__.split("\n")[0] in text


def test_names_are_read_from_the_source_where_an_extra_is_missing():
    pytest.importorskip("torch")
    assert sorted(site_text._written_names("firstk.losses")) == site_text.public_names("firstk.losses")


def test_list_of_pages_leads_to_pages():
    text = site_text.llms_text()
    assert text.startswith("# firstk\n\n> ")
    links = re.findall(r"\]\(([^)]+)\.html\)", text)
    assert len(links) > 50
    for link in links:
        source = EXAMPLES / f"{Path(link).name}.py" if link.startswith("gallery/") else DOCS / f"{link}.md"
        assert source.is_file(), link


def test_examples_are_scripts_with_a_question_and_a_picture():
    scripts = sorted(EXAMPLES.glob("[0-9]*.py"))
    assert 15 <= len(scripts) <= 20
    for script in scripts:
        text = script.read_text("utf-8")
        title, rule = ast.get_docstring(ast.parse(text)).splitlines()[:2]
        assert rule == "=" * len(title), script.name
        assert "plt.subplots" in text, f"{script.name} shows no picture"


def test_notebook_has_the_ten_lines_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = json.loads((EXAMPLES / "firstk_in_ten_lines.ipynb").read_text("utf-8"))
    assert book["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "\n\n".join(cells) == readme.split("```python\n", 1)[1].split("```", 1)[0].rstrip("\n")


def test_link_check_finds_broken_links(tmp_path):
    check = loaded("check_links")
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a> <a href="https://else.where">y</a> <p id="here">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here">z</a>')
    assert check.broken_links(tmp_path) == []
    (tmp_path / "c.html").write_text('<a href="b.html#nowhere">x</a> <img src="no.png">')
    assert len(check.broken_links(tmp_path)) == 2


def test_citation_is_valid():
    """The fields that the format requires, in types that it allows (cff-version 1.2.0)."""
    lines = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    assert fields["cff-version"] == "1.2.0"
    assert {"message", "title", "type", "version", "license"} <= set(fields)
    assert "authors:" in lines
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert fields["version"] == project["version"] == firstk.__version__
    assert fields["license"] == project["license"]


def read_yaml(path):
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text("utf-8"))


def steps_of(workflow):
    (job,) = read_yaml(f".github/workflows/{workflow}.yml")["jobs"].values()
    return job, [step["run"] for step in job["steps"] if "run" in step]


def test_workflows_run_the_commands_of_the_readme():
    job, steps = steps_of("test")
    assert "npm install --global onnxruntime-web" in steps[0]  # tests of what browsers run are not skipped there
    assert steps[1:] == ["make demo", "make test"]
    matrix = job["strategy"]["matrix"]
    runs = {(os, python) for os in matrix["os"] for python in matrix["python"]}
    runs |= {(one["os"], one["python"]) for one in matrix["include"]}
    assert {("ubuntu-latest", "3.11"), ("ubuntu-latest", "3.13"), ("macos-latest", "3.13")} <= runs
    assert steps_of("docs")[1] == ["make docs"]
    made, tried = steps_of("release")[1]
    assert made == "make dist"
    assert "clean/bin/firstk demo" in tried


def test_issue_templates_ask_for_versions():
    bug = read_yaml(".github/ISSUE_TEMPLATE/bug.yml")
    assert any("firstk info" in str(field) for field in bug["body"])
    assert read_yaml(".github/ISSUE_TEMPLATE/question.yml")["body"]


def test_hooks_are_the_commands_of_make_lint():
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    hooks = {hook["entry"].replace(" --force-exclude", "").removeprefix(".venv/bin/") for hook in local["hooks"]}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^lint: style types$", makefile, re.MULTILINE)
    recipes = re.findall(r"^(?:style|types):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    lines = "".join(recipes).splitlines()
    assert hooks == {line.strip().removeprefix("$(BIN)/").removesuffix(" .") for line in lines}


def test_decisions_are_pages_of_rooms():
    rooms = {path.name.strip("_") for path in (ROOT / "src" / "firstk").iterdir() if path.is_dir()}
    assert {page.stem for page in (DOCS / "decisions").glob("*.md")} - rooms == {"papers", "project", "evidence"}


def test_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "[Unreleased]"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def cells_of(page, first):
    """Return the cells of the row of a table that begins with a text."""
    row = next(line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith(f"| {first}"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_figures_of_the_readme_are_those_of_the_pages():
    """They are written twice: in the README, and on the page that a command writes or that names its command."""
    readme = (ROOT / "README.md").read_text("utf-8")
    ours, opq = (", ".join(cells_of("compared-with.md", name)[1:4]) for name in ("firstk embedded", "faiss OPQ+PQ"))
    residual = " and ".join(cells_of("compared-with.md", "faiss RQ")[2:4])
    assert f"{ours} (faiss OPQ {opq}; faiss's residual quantizer is better: {residual} in 16 and 32 bytes" in readme
    assert cells_of("compared-with.md", '`"error_bound"`')[1] in readme
    assert f"PCA {cells_of('compared-with.md', 'PCA (`PCA`')[1]}" in readme


def test_the_page_of_benchmarks_is_its_record():
    text = record.PAGE.read_text("utf-8")
    assert record.page(text, json.loads(record.RECORD.read_text("utf-8"))) == text


# -- the built site --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site():
    """Serve the site that `make docs` built."""
    if not (BUILT / "index.html").is_file():
        pytest.skip("run make docs first")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=BUILT))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def errors_of(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def as_seen(browser, *, width, dark):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.mark.full
def test_every_internal_link_of_the_site_leads_somewhere(site):
    assert subprocess.run([sys.executable, DOCS / "check_links.py", BUILT], check=False).returncode == 0


@pytest.mark.full
def test_search_finds_pgvector(site, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{site}/search.html?q=pgvector")
    links = "a[href*='vector-stores.html']"  # results come one by one
    assert WebDriverWait(browser, 60).until(lambda b: b.find_elements("css selector", f"ul.search {links}"))
    assert errors_of(browser) == []


@pytest.mark.full
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "choose",
        "faq",
        "compared-with",
        "how-many-bytes",
        "gallery/index",
        "gallery/01_how_many_dimensions",
        "api/generated/firstk.PrefixEncoder",
        "theory",
    ],
)
def test_pages_fit_a_phone_in_light_and_dark(site, browser, page):
    for dark in (False, True):
        as_seen(browser, width=390, dark=dark)
        browser.get(f"{site}/{page}.html")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        colours = browser.execute_script(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor, getComputedStyle("
            "document.documentElement).getPropertyValue('--pst-color-background')]"
        )
        assert len(set(colours[:2])) == 2
        assert browser.execute_script("return document.documentElement.dataset.theme") == ("dark" if dark else "light")
        assert errors_of(browser) == []


@pytest.mark.full
def test_site_has_its_summaries_and_loads_nothing_from_elsewhere(site):
    assert (BUILT / "llms.txt").read_text("utf-8") == site_text.llms_text()
    assert "## PrefixEncoder" in (BUILT / "api.txt").read_text("utf-8")
    for page in BUILT.rglob("*.html"):
        if "_static" not in page.parts:
            text = page.read_text("utf-8")
            loads = re.findall(r"<(?:script|img|iframe)[^>]*?src=\"(https?:[^\"]+)", text)
            loads += re.findall(r"<link[^>]*?rel=\"stylesheet\"[^>]*?href=\"(https?:[^\"]+)", text)
            assert loads == [], page.name


def test_the_picture_of_the_rooms_shows_each_room_and_its_imports():
    """The matrix has a dot for a known import, and none for one that only types need."""
    figure = loaded("architecture_figure")
    rooms = {room for layer in figure.layers() for room in layer}
    found = {path.stem for path in (ROOT / "src" / "firstk").iterdir() if path.is_dir() or path.suffix == ".py"}
    assert rooms == found - {"__init__", "__main__", "__pycache__", "py"}
    assert "data" in figure.imported_rooms("quality")
    assert "quality" not in figure.imported_rooms("words")  # Choice is a type there
    picture = ElementTree.fromstring(figure.drawing())
    assert sum(part.tag.endswith("circle") for part in picture) == sum(
        len(figure.imported_rooms(room) & rooms) for room in rooms
    )


def test_the_page_without_a_server_finds_the_questions_that_the_library_finds(tmp_path, browser):
    page = loaded("search_page")
    page.write_search_page(tmp_path)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.get(f"http://127.0.0.1:{server.server_address[1]}/index.html")
        deadline = time.monotonic() + 60
        while not (rows := browser.find_elements("css selector", "#found tr")) and time.monotonic() < deadline:
            time.sleep(0.1)
        found = [row.find_elements("css selector", "td")[1].text for row in rows]
    finally:
        server.shutdown()
    bank = load_banking()
    stored, texts = (
        np.vstack([bank.X_train, bank.X_test[page.ASKED :]]),
        [*bank.texts_train, *bank.texts_test[page.ASKED :]],
    )
    quantizer = PrefixEncoder(objective="similarity").fit(bank.X_train).encoder_.quantizer(page.BYTES)
    scores = quantizer.scores(quantizer.encode_query(bank.X_test[:1]), quantizer.encode(stored))[0]
    nearest = np.sort(scores)[::-1][:10]
    np.testing.assert_allclose([scores[texts.index(text)] for text in found], nearest, atol=1e-5)
