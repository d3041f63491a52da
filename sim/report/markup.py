"""HTML made of functions: text is escaped unless it was made here.

A page is built from the inside out, so that what is opened is closed; no template language is
needed for that.
"""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = str | Iterable["Child"]
"""Text is escaped, markup stays as it is, and an iterable stands for what it yields."""

EMPTY = frozenset({"meta", "br", "col"})
"""Elements that have no end."""


def element(tag: str, /, *children: Child, **attributes: str | None) -> Markup:
    """One element.

    Attributes are written in the order given, ``_`` as ``-`` and without one at the end, so that
    ``class_`` is ``class``; those that are ``None`` are left out.
    """
    opened = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in EMPTY:
        return Markup(f"<{tag}{opened}>")
    return Markup(f"<{tag}{opened}>{joined(children)}</{tag}>")


def joined(child: Child) -> Markup:
    """A child as markup."""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(escape(child, quote=False))
    return Markup("".join(joined(each) for each in child))
