"""The documentation as plain text: ``llms.txt``, a list of its pages, and ``api.txt``, the reference in one file.

Both come from the sources of the site: the Markdown pages, and the docstrings of the public names.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent / "src"
# Their `__all__` is for other rooms.
INTERNAL = {"firstk.cli", "firstk.data.remote", "firstk.solvers.gradient.losses"}
# Every name that these define is public.
WHOLE = {"firstk.contracts", "firstk.exceptions"}


def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def _written_names(module: str) -> list[str]:
    """Return the `__all__` of a module, read from its source: an extra may be missing."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return [name.value for name in getattr(node.value, "elts", ()) if isinstance(name, ast.Constant)]
    return []


def _modules() -> list[str]:
    paths = (path.relative_to(ROOT).with_suffix("") for path in sorted(ROOT.glob("firstk/**/*.py")))
    return [".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"]


# The modules that say what is public in them, firstk itself first.
PUBLIC = tuple(sorted(name for name in _modules() if name in WHOLE or (name not in INTERNAL and _written_names(name))))


def title_of(module: str) -> str:
    """Return what a module is about: the beginning of its docstring."""
    return re.split(r"[:,;.] ", (ast.get_docstring(_tree(module)) or module).splitlines()[0] + " ")[0].rstrip(".")


def public_names(module: str) -> list[str]:
    """Return the public names of a module."""
    try:
        home = importlib.import_module(module)
    except ImportError:
        names = _written_names(module)
    else:
        own = [name for name, value in vars(home).items() if getattr(value, "__module__", None) == module]
        names = own if module in WHOLE else home.__all__
    return sorted(name for name in names if not name.startswith("_"))


def listed(module: str) -> list[str]:
    """Return the names that the page of a package lists: its public ones, but for those of firstk itself."""
    top = set() if module == "firstk" else set(public_names("firstk"))
    return [name for name in public_names(module) if name not in top]


def api_page(module: str) -> str:
    """Return the page of a package in the reference, whose summaries and pages of names autosummary makes."""
    title = f"{title_of(module)}: {module}"
    names = "\n".join(f"   {name}" for name in listed(module))
    return (
        f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: generated\n"
        f"   :nosignatures:\n\n{names}\n"
    )


def write_api_pages(folder: Path) -> None:
    """Write the pages of the reference: an index, and one for each package."""
    folder.mkdir(exist_ok=True)
    lines = [
        "API reference",
        "=============",
        "",
        "Every public name, from its docstring. `In one file <../api.txt>`__.",
        "",
    ]
    lines += [".. toctree::", "   :maxdepth: 1", "", *(f"   {module}" for module in PUBLIC)]
    texts = {"index.rst": "\n".join(lines) + "\n"} | {f"{module}.rst": api_page(module) for module in PUBLIC}
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:  # an unchanged page is not built again
            path.write_text(text, encoding="utf-8", newline="\n")


def pages() -> list[Path]:
    """Return the Markdown pages of the site."""
    return [path for path in sorted(HERE.rglob("*.md")) if "_build" not in path.parts]


def title_and_lead(text: str) -> tuple[str, str]:
    """Return the title of a page and its first paragraph, as plain text."""
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    body = re.sub(r"^(```|:::)[\s\S]*?^\1\s*$|<!--[\s\S]*?-->", "", text[title.end() if title else 0 :], flags=re.M)
    lead = next((part for part in body.split("\n\n") if re.match(r"[A-Za-z`*\"]", part.strip())), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(lead.split()))
    return (title[1] if title else ""), plain


def llms_text() -> str:
    """Return the list of pages in the form of llms.txt: a title, a summary, links with what each is about."""
    lines = [
        "# firstk",
        "",
        "> Make embedding vectors shorter: learn a code whose first k numbers are the best k to keep, for every k at "
        "once, with the curve of quality against k and the smallest k that keeps what you need.",
        "",
        "The reference of all public names is in one file: [api.txt](api.txt).",
        "",
        "## Pages",
        "",
    ]
    for path in pages():
        title, lead = title_and_lead(path.read_text("utf-8"))
        place = path.relative_to(HERE).with_suffix(".html").as_posix()
        lines.append(f"- [{title}]({place}): {lead}" if lead else f"- [{title}]({place})")
    lines += ["", "## Examples", ""]
    for path in sorted((HERE.parent / "examples").glob("[0-9]*.py")):
        lines.append(f"- [{example_title(path)}](gallery/{path.stem}.html)")
    return "\n".join(lines) + "\n"


def example_title(path: Path) -> str:
    """Return the title of an example: the first line of its docstring."""
    text = path.read_text("utf-8")
    return next(line for line in text.split('"""')[1].splitlines() if line.strip()).strip()


def api_text() -> str:
    """Return the signature and the docstring of every public name, once."""
    parts = []
    for module in PUBLIC:
        parts.append(f"# {title_of(module)}: {module}\n")
        try:
            home = importlib.import_module(module)
        except ImportError as error:
            parts.append(f"(not read: {error})")
            continue
        parts += [_entry(name, getattr(home, name)) for name in listed(module)]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: object) -> str:
    doc = inspect.getdoc(value) if callable(value) else None
    if doc is None:
        return f"## {name}\n\n{type(value).__name__}"
    lines = [f"## {name}{_signature(value)}", "", doc]
    if inspect.isclass(value):
        for method, member in inspect.getmembers(value, inspect.isfunction):
            text = inspect.getdoc(member)
            if not method.startswith("_") and text and (member.__module__ or "").startswith("firstk"):
                lines.append(f"\n- {method}{_signature(member)}: {text.splitlines()[0]}")
    return "\n".join(lines)


def _signature(value: object) -> str:
    try:
        return str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def write_summaries(folder: Path) -> None:
    """Write both files into the folder of the built site."""
    (folder / "llms.txt").write_text(llms_text(), encoding="utf-8", newline="\n")
    (folder / "api.txt").write_text(api_text(), encoding="utf-8", newline="\n")
