"""Data classes as plain data and back, for plans in files that people edit.

Rules of this file:

* An object is ``{"is": "Source", "events": 24, ...}``; fields with their default are left out.
* A class is read only if it is registered with :func:`plain`.
* A value is read only if it matches the annotation of its field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from reprlib import repr as short
from types import NoneType, UnionType
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from model.vocabulary.settings import PlainData, defaults_of, is_int, is_number, nearest

ClassT = TypeVar("ClassT", bound=type)
_KINDS: dict[str, type] = {}
IS = "is"


def plain(kind: ClassT) -> ClassT:
    """Register the decorated frozen dataclass or NamedTuple."""
    assert kind.__name__ not in _KINDS, kind
    _KINDS[kind.__name__] = kind
    return kind


def to_plain(value: object) -> PlainData:
    """Return data for ``json.dump``; :func:`from_plain` reads it back."""
    defaults = _defaults(type(value))
    if defaults is None:
        return [to_plain(each) for each in value] if isinstance(value, tuple) else value
    found = {name: getattr(value, name) for name in defaults}
    changed = {
        name: to_plain(each)
        for name, each in found.items()
        if defaults[name] is MISSING or each != defaults[name]
    }
    return {IS: type(value).__name__, **changed}


def from_plain(data: PlainData) -> object:
    """Read data of :func:`to_plain`; raise ``ValueError`` with one sentence for other data."""
    if isinstance(data, list):
        return tuple([from_plain(each) for each in data])
    if not isinstance(data, Mapping):
        return data
    name = data.get(IS)
    if not isinstance(name, str) or name not in _KINDS:
        msg = f"there is no {name!r} in a plan{nearest(str(name), _KINDS)}"
        raise ValueError(msg)
    kind = _KINDS[name]
    known = _defaults(kind) or {}
    given = {field: from_plain(value) for field, value in data.items() if field != IS}
    for field, value in given.items():
        if field not in known:
            msg = f"{name} has no {field!r}{nearest(field, known)}; it has {', '.join(known)}"
            raise ValueError(msg)
        _check(f"{name}.{field}", value, _hints(kind)[field])
    missing = [field for field in known if known[field] is MISSING and field not in given]
    if missing:
        msg = f"{name} needs {', '.join(missing)}"
        raise ValueError(msg)
    return kind(**given)


def _check(label: str, value: object, hint: object) -> None:
    """Raise ``ValueError`` with one sentence unless a value matches an annotation."""
    if get_origin(hint) is tuple and isinstance(value, tuple):
        for number, each in enumerate(value):
            _check(f"{label}[{number}]", each, get_args(hint)[0])
        return
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not any(_is(value, choice) for choice in choices):
        *words, last = [word for choice in choices for word in _words(choice)]
        expected = f"{', '.join(words)} or {last}" if words else last
        msg = f"{label} is {short(value)}; it must be {expected}"
        raise ValueError(msg)


def _is(value: object, hint: object) -> bool:
    """Return whether a value matches one annotation; an integer passes as a float."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        return is_int(value) if hint is int else is_number(value)
    return isinstance(hint, type) and isinstance(value, hint)


def _words(hint: type) -> Sequence[str]:
    """Return the words for the values of one annotation."""
    if get_origin(hint) is Literal:
        return [repr(each) for each in get_args(hint)]
    return [_WORDS.get(get_origin(hint) or hint, hint.__name__)]


_WORDS: Mapping[type, str] = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple: "a list",
    NoneType: "null",
}


@cache
def _hints(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind)


def _defaults(kind: type) -> dict[str, object] | None:
    """Return fields of a registered class with their defaults; ``None`` for anything else."""
    return defaults_of(kind) if _KINDS.get(kind.__name__) is kind else None
