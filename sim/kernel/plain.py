"""Write data classes as plain data and read them back: a plan in a file that a person edits.

Rules of this file:

* An object is ``{"is": "Source", "events": 24, ...}``; fields that have their default are left out.
* A class is read only if it was registered with :func:`plain`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from model.vocabulary.settings import nearest

ClassT = TypeVar("ClassT", bound=type)
_KINDS: dict[str, Any] = {}
IS = "is"


def plain(kind: ClassT) -> ClassT:
    """Register a frozen dataclass or NamedTuple, as its decorator."""
    assert kind.__name__ not in _KINDS, kind
    _KINDS[kind.__name__] = kind
    return kind


def to_plain(value: Any) -> Any:
    """Return what ``json.dump`` takes; :func:`from_plain` reads it back."""
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


def from_plain(data: Any) -> Any:
    """Read what :func:`to_plain` wrote; ``ValueError`` with one sentence for anything else."""
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
    for field in given:
        if field not in known:
            msg = f"{name} has no {field!r}{nearest(field, known)}; it has {', '.join(known)}"
            raise ValueError(msg)
    try:
        return kind(**given)
    except TypeError as error:
        msg = f"{dict(data)} is no {name}: {error}"
        raise ValueError(msg) from error


def _defaults(kind: type) -> dict[str, Any] | None:
    """Fields of a registered kind with their defaults; ``None`` for anything else."""
    if _KINDS.get(kind.__name__) is not kind:
        return None
    if is_dataclass(kind):
        return {each.name: each.default for each in fields(kind)}
    named: Any = kind
    return {name: named._field_defaults.get(name, MISSING) for name in named._fields}
