"""Expressions that select comparisons by their names, as ``slack and not (umts or q)``."""

import re
from collections import deque
from collections.abc import Callable, Iterable

from straggler.errors import UsageError

Selection = Callable[[str], bool]
"""A function that returns whether a name is selected."""

_TOKEN = re.compile(r"[()]|[^\s()]+")
_NO_WORD = {"and", "or", ")", ""}


def parse_selection(expression: str) -> Selection:
    """Parse an expression of words, ``and``, ``or``, ``not`` and parentheses.

    A word selects the names that contain it, in upper or lower case. Raise :class:`UsageError` for
    anything else.
    """
    tokens = deque(_TOKEN.findall(expression.lower()))
    try:
        selection = _parse_or(tokens)
        if tokens:
            raise ValueError(tokens[0])
    except ValueError as error:
        form = "words with and, or, not and parentheses between them"
        raise UsageError(f"-k is {expression!r}; it must be {form}") from error
    return lambda name: selection(name.lower())


def _parse_or(tokens: deque[str]) -> Selection:
    return _parse_between("or", any, _parse_and, tokens)


def _parse_and(tokens: deque[str]) -> Selection:
    return _parse_between("and", all, _parse_not, tokens)


def _parse_between(
    word: str,
    combine: Callable[[Iterable[bool]], bool],
    parse_part: Callable[[deque[str]], Selection],
    tokens: deque[str],
) -> Selection:
    parts = [parse_part(tokens)]
    while tokens and tokens[0] == word:
        tokens.popleft()
        parts.append(parse_part(tokens))
    return lambda name: combine(part(name) for part in parts)


def _parse_not(tokens: deque[str]) -> Selection:
    token = tokens.popleft() if tokens else ""
    if token in _NO_WORD:
        raise ValueError(token)
    if token == "not":
        inner = _parse_not(tokens)
        return lambda name: not inner(name)
    if token == "(":
        inner = _parse_or(tokens)
        if not tokens or tokens.popleft() != ")":
            raise ValueError(token)
        return inner
    return lambda name: token in name
