"""Settings as text, the way a command line passes them: ``--set key=value``."""

from collections.abc import Collection, Mapping
from math import isfinite
from typing import NamedTuple, TypeAlias, TypeVar

from model.vocabulary.settings import nearest, require

T = TypeVar("T")


class Word(NamedTuple):
    """The default of a setting that takes words."""

    default: str
    known: Collection[str]
    is_list: bool = False
    """Whether it takes several, with commas between them."""

    def __str__(self) -> str:
        return self.default


Setting: TypeAlias = int | float | str | Word
YES, NO = Word("yes", ("yes", "no")), Word("no", ("yes", "no"))

AUTO = "auto"
"""Whatever happens when nothing is said."""
BACKLOG, NEVER, NONE = "backlog", "never", "none"
INSTEAD = (AUTO, BACKLOG, NEVER, NONE)
"""What a setting may take that otherwise takes a number; each says which."""


def chosen(what: str, name: str, known: Mapping[str, T]) -> T:
    """What is known as ``name``; ``ValueError`` with a suggestion when there is no such thing."""
    if name not in known:
        msg = f"{what} is {name!r}; it must be one of {', '.join(known)}{nearest(name, known)}"
        raise ValueError(msg)
    return known[name]


def with_defaults(settings: Mapping[str, str], defaults: Mapping[str, Setting]) -> dict[str, str]:
    """Every setting as text; ``ValueError`` for a key that has no default, or an unknown word."""
    for key in settings:
        if key not in defaults:
            known = ", ".join(defaults)
            msg = f"there is no setting {key!r}{nearest(key, defaults)}; known are {known}"
            raise ValueError(msg)
        _refuse_unknown(key, settings[key], defaults[key])
    return {key: str(settings.get(key, default)).strip() for key, default in defaults.items()}


def number(key: str, text: str, kind: type[int] | type[float], *, other: str = "") -> int | float:
    """A finite number; ``ValueError`` naming the key and the text for anything else.

    ``other`` is the word that the caller takes instead.
    """
    expected = "an integer" if kind is int else "a finite number"
    if other:
        expected += f", or {other}"
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    require(isfinite(value), key, text, expected)
    return value


def refuse_kind(key: str, text: str, default: Setting) -> None:
    """Refuse a text where a number is needed, by the default, and a word that there is not.

    Raises ``ValueError`` naming both. Which numbers can be is for the run to judge.
    """
    _refuse_unknown(key, text, default)
    if text in INSTEAD:
        return
    if default in INSTEAD:
        number(key, text, float, other=str(default))
    elif not isinstance(default, str | Word):
        number(key, text, type(default))


def _refuse_unknown(key: str, text: str, default: Setting) -> None:
    if isinstance(default, Word):
        known = dict.fromkeys(default.known)
        for word in text.split(",") if default.is_list else (text,):
            chosen(key, word.strip(), known)


def integer(key: str, text: str) -> int:
    """An integer; ``ValueError`` as for :func:`number`."""
    return int(number(key, text, int))


def is_yes(key: str, text: str) -> bool:
    """Whether the text is ``yes``; ``ValueError`` if it is not ``no`` either."""
    require(text in ("yes", "no"), key, text, "yes or no")
    return text == "yes"
