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
    written = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
            written += f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(text)}"')
    if name in VOID:
        return Html(f"<{name}{written}>")
    body = "".join(_texts(inside))
    return Html(f"<{name}{written}/>" if not body and name in SHAPES else f"<{name}{written}>{body}</{name}>")


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


def pairs_html(pairs: Iterable[tuple[str, str]], kind: str | None = None) -> Html:
    """Return terms, or large figures, each with what it is."""
    items = [element("div", element("dt", name), element("dd", text)) for name, text in pairs]
    return element("dl", items, class_=kind) if items else Html()


def document(
    body: object,
    *,
    title: str,
    summary: str,
    commands: Sequence[str] = (),
    figures: Iterable[tuple[str, str]] = (),
    terms: Iterable[tuple[str, str]] = (),
    about: str,
    facts: Iterable[tuple[str, str | int | float]] = (),
    notes: Sequence[str] = (),
    variables: str = "",
    scripts: str = "",
) -> str:
    """Return a page as the text of an HTML file.

    Parameters
    ----------
    body : Html
        The sections.
    title : str
    summary : str
        Paragraphs, which empty lines part; the first is set large.
    commands : sequence of str
        What does it.
    figures : sequence of (str, str)
        Large figures, each with what it is.
    terms : sequence of (str, str)
    about : str
        The heading of the facts.
    facts : sequence of (str, value)
    notes : sequence of str
    variables : str
        Further variables of the style sheet.
    scripts : Html
        What moves the page, if anything does.
    """
    first, _, others = summary.strip().partition("\n\n")
    head = [element("h1", title), paragraphs(first, "lead"), paragraphs(others)]
    if commands:
        told = "The command that does it:" if len(commands) == 1 else "The commands that do it:"
        head += [element("p", told, class_="do"), element("pre", element("code", "\n".join(commands)), tabindex=0)]
    # A line must not end between k and its number.
    large = ((small.replace("k = ", "k\u00a0=\u00a0"), big) for big, small in figures)
    head += [pairs_html(large, "headline"), pairs_html(terms, "terms")]
    texts = [(name, v if isinstance(v, str) else f"{v:,}" if isinstance(v, int) else f"{v:.6g}") for name, v in facts]
    foot = [element("section", element("h2", about), pairs_html(texts), class_="facts")] if texts else []
    if notes:
        items = element("ul", [element("li", note) for note in notes])
        foot.append(element("section", element("h2", "Notes"), items, class_="notes"))
    return Template(static("page.html")).substitute(
        title=escape(title),
        css=static("page.css"),
        light=f"{css_variables(0)} {variables}".rstrip(),
        dark=css_variables(1),
        main=joined(element("header", "\n", joined(*head), "\n"), body, *foot),
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
