"""Texts of strangers, made safe to show."""

import unicodedata


def escaped(text: str) -> str:
    """Return a text in which every character that would not be seen as itself is escaped.

    Texts of files and of judged systems may have codes that clear a terminal, end a line, or turn
    it around.
    """
    if text.isprintable():
        return text
    return "".join(each if _is_seen(each) else _escape(each) for each in text)


def escaped_lines(text: str) -> str:
    """Return a text whose lines are escaped one by one."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))


def _is_seen(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
