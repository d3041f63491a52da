"""Conditions of ``--on`` on the columns of two files, each column of one kind.

Rules of this file:

1. A column is read only if a condition names it.
2. Files tell integers from numbers, people hardly do: integers are read as numbers if a condition
   compares them with numbers, or with a fraction, and as text if it asks whether they equal a
   column that is text in most cells.
3. All conditions share the streams: the kind that one of them gives a column holds for the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from model.vocabulary.join_conditions import parse_condition, write_condition
from model.vocabulary.join_predicates import (
    BUILT_IN,
    INTEGER,
    NUMBER,
    RESERVED,
    TEXT,
    Columns,
    Equi,
    Predicate,
    R,
    S,
    columns_of,
)
from straggler.errors import UsageError
from straggler.inputs.typed_columns import TypedColumns

FileColumns = Mapping[str, TypedColumns]
"""The columns of each stream's file."""
Column = tuple[str, str]
"""A stream and the name of a column."""


class Conditions(NamedTuple):
    """Conditions with the names of their queries, and the columns that they look at."""

    queries: tuple[tuple[str, Predicate], ...]
    r_columns: Columns = ()
    s_columns: Columns = ()


def read_conditions(texts: Sequence[str], files: FileColumns) -> Conditions:
    """Read conditions on two files, or on streams without further columns if there are none.

    Raise :class:`UsageError` with one sentence for a condition that cannot be read, and for a
    column that is missing or of the wrong kind.
    """
    try:
        return _read(texts, files)
    except ValueError as error:
        found = (columns.obstacle(name) for columns in files.values() for name in columns.known)
        why = filter(None, dict.fromkeys(found))
        raise UsageError("; ".join([f"--on: {error}", *why])) from error


def _read(texts: Sequence[str], files: FileColumns) -> Conditions:
    kinds = {stream: _kinds(texts, files.get(stream)) for stream in (R, S)}
    parts = [part for text in texts for part in _parts(text)]
    while changes := next(filter(None, (_changes(part, kinds, files) for part in parts)), None):
        for (stream, name), kind in changes.items():
            kinds[stream][name] = kind
    predicates = [parse_condition(text, kinds[R], kinds[S]) for text in texts]
    looked_at = dict.fromkeys(each for predicate in predicates for each in columns_of(predicate))
    r_columns, s_columns = (
        tuple(
            (name, kinds[stream][name])
            for each, name in looked_at
            if each == stream and name not in BUILT_IN
        )
        for stream in (R, S)
    )
    names = [write_condition(predicate, kinds[R], kinds[S]) for predicate in predicates]
    return Conditions(tuple(zip(names, predicates, strict=True)), r_columns, s_columns)


def _kinds(texts: Sequence[str], columns: TypedColumns | None) -> dict[str, str]:
    """Return the kinds of the columns of a file; those that no text names are not looked at."""
    words = {word for text in texts for word in re.findall(r"\w+", _without_quoted(text))}
    kinds: dict[str, str] = {}
    if columns is None:
        return kinds
    for name in columns:
        if name in words and name in RESERVED and name not in BUILT_IN:
            raise UsageError(
                f"--on names the column {name!r} of {columns.file}, but every tuple has a {name}"
                " already; rename the column"
            )
        if name not in BUILT_IN:
            kinds[name] = columns[name] if name in words else TEXT
    return kinds


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a condition, which the word ``and`` joins."""
    start = 0
    for found in re.finditer(r"\sand\s", _without_quoted(text)):
        yield text[start : found.start()]
        start = found.end()
    yield text[start:]


def _without_quoted(text: str) -> str:
    """Return the text with the content of quoted texts blotted out."""
    quoted = r"""("(?:[^"\\]|\\.)*"|'[^']*')"""
    return re.sub(quoted, lambda found: '"' * len(found[0]), text)


def _changes(
    part: str, kinds: Mapping[str, Mapping[str, str]], files: FileColumns
) -> Mapping[Column, str]:
    """Return the fewest columns of integers that have to be read otherwise, with their kinds.

    The result is empty if the part can be read as it is, or not at all. A column that is text
    because of a few cells does not make others text: ``5`` would not equal its ``5.0``.
    """
    words = re.findall(r"\w+", _without_quoted(part))
    whole = [
        (stream, name)
        for stream in (R, S)
        for name in dict.fromkeys(words)
        if kinds[stream].get(name) == INTEGER
    ]
    choices = product((INTEGER, NUMBER, TEXT), repeat=len(whole))
    for chosen in sorted(choices, key=lambda each: len(each) - each.count(INTEGER)):
        read_as = dict(zip(whole, chosen, strict=True))
        tried = {
            stream: {name: read_as.get((stream, name), kind) for name, kind in own.items()}
            for stream, own in kinds.items()
        }
        with suppress(ValueError):
            predicate = parse_condition(part, tried[R], tried[S])
            named = [each for each in columns_of(predicate) if each[0] in files]
            is_spoilt = any(files[stream].obstacle(name) for stream, name in named)
            if TEXT not in chosen or (isinstance(predicate, Equi) and not is_spoilt):
                return {column: kind for column, kind in read_as.items() if kind != INTEGER}
    return {}
