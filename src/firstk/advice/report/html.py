"""HTML that cannot be broken out of: every text and every attribute is escaped here, and nowhere else.

The page needs no network, no library and, but for its sliders, no script.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from firstk._base.atomic_file import atomic_file
from firstk.advice.report.layout import css_variables

# Elements without an end, and those of drawings that are closed at once if nothing is in them.
VOID, SHAPES = {"img", "input"}, {"line", "rect", "circle", "path", "polyline", "polygon"}


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def element(name: str, /, *inside: object, **attributes: object) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
    *inside : str, Html, or iterables of them
        Text is escaped, Html is not; None is left out.
    **attributes : str, number or bool
        Underscores in their names become hyphens, and one at the end goes. None and False are left out, of True only
        the name is written. Floats have one decimal.

    Examples
    --------
    >>> element("p", "1 < 2", element("b", "!"), class_="note", data_k=2, hidden=True)
    '<p class="note" data-k="2" hidden>1 &lt; 2<b>!</b></p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{written}>")
    body = "".join(_texts(inside))
    return Html(f"<{name}{written}/>" if not body and name in SHAPES else f"<{name}{written}>{body}</{name}>")


def _attribute(key: str, value: object) -> str:
    key = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if isinstance(value, float):
        value = f"{value:.1f}".removesuffix(".0")
    return f" {key}" if value is True else f' {key}="{escape(str(value))}"'


def _texts(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Html):
            yield part
        elif isinstance(part, str):
            yield escape(part)
        elif part is not None:
            yield from _texts(part)  # type: ignore[arg-type]


def joined(*parts: object) -> Html:
    """Return texts and elements, one on each line."""
    return Html("\n".join(filter(None, _texts(parts))))


# -- parts of every page -------------------------------------------------------------------------------------------


def paragraphs(text: str, kind: str | None = None) -> Html:
    """Return plain text as paragraphs, which empty lines part."""
    return joined(element("p", part.strip(), class_=kind) for part in text.split("\n\n") if part.strip())


def summary_html(text: str) -> Html:
    """Return the paragraphs of a summary, the first set large."""
    first, _, others = text.strip().partition("\n\n")
    return joined(paragraphs(first, "lead"), paragraphs(others))


def commands_html(commands: Sequence[str]) -> Html:
    """Return the commands that do it."""
    if not commands:
        return Html()
    told = "The command that does it:" if len(commands) == 1 else "The commands that do it:"
    return joined(element("p", told, class_="do"), element("pre", element("code", "\n".join(commands)), tabindex=0))


def headline_html(figures: Iterable[tuple[str, str]]) -> Html:
    """Show up to four large figures, each with what it is."""
    # A line must not end between k and its number.
    return _pairs(((small.replace("k = ", "k\u00a0=\u00a0"), big) for big, small in figures), "headline")


def terms_html(terms: Iterable[tuple[str, str]]) -> Html:
    """Return terms as a list, one line each."""
    return _pairs(terms, "terms")


def _pairs(pairs: Iterable[tuple[str, str]], kind: str | None = None) -> Html:
    items = [element("div", element("dt", name), element("dd", text)) for name, text in pairs]
    return element("dl", items, class_=kind) if items else Html()


def facts_html(heading: str, facts: Sequence[tuple[str, str | int | float]]) -> Html:
    """Return plain facts below a heading."""
    texts = [(name, v if isinstance(v, str) else f"{v:,}" if isinstance(v, int) else f"{v:.6g}") for name, v in facts]
    return element("section", element("h2", heading), _pairs(texts), class_="facts") if texts else Html()


def notes_html(notes: Sequence[str]) -> Html:
    """Return the notes at the end of a page."""
    items = element("ul", [element("li", note) for note in notes])
    return element("section", element("h2", "Notes"), items, class_="notes") if notes else Html()


def document(*, title: str, header: str, body: str, footer: str, variables: str = "", scripts: str = "") -> str:
    """Return a page as the text of an HTML file.

    Parameters
    ----------
    title : str
        Plain text; all other parts are HTML.
    header, body, footer : str
        The answer, sections, and facts and notes.
    variables : str
        Further variables of the style sheet.
    scripts : str
        What moves the page, if anything does.
    """
    return Template(static("page.html")).substitute(
        title=escape(title),
        css=static("page.css"),
        light=f"{css_variables(0)} {variables}".rstrip(),
        dark=css_variables(1),
        header=header,
        sections=body,
        footer=footer,
        scripts=scripts,
    )


def static(name: str) -> str:
    """Return a file of the page: its frame, style sheet or script."""
    return files("firstk.advice.report").joinpath("static", name).read_text(encoding="utf-8")


def write_document(path: str | os.PathLike[str], text: str) -> Path:
    """Write the text of a page by an atomic write."""
    with atomic_file(path, "A report", kinds=(".html", ".htm")) as temporary:
        # Labels may hold halves of surrogate pairs, which no file can: they become question marks.
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    return Path(path)
