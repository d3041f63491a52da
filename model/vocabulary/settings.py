"""Settings, declared once: a dataclass field with its range, its choices and its meaning.

A class of settings is a frozen dataclass that inherits :class:`Settings`; a field is declared as
``rate_hz: Annotated[float, Setting("arrivals a second", above=0)] = 50.0``. Everything else
follows from the declaration: the check when an object is built, plain data for JSON, texts as in
``--set KEY=VALUE``, options of the command line, tables of documentation, and the sentence that
refuses a bad value.

Rules of this file:

1. A refusal is a ``ValueError`` with one sentence: name, offending value, what is allowed.
2. A name ends in its unit. Times in ``_us`` are below 2^61, so that their sums fit into 64 bits;
   a setting may declare another maximum.
"""

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from inspect import signature
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    TypeGuard,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from model.vocabulary.durations import TOO_LONG_US, in_durations, in_unit_of_name, resolve_times

T = TypeVar("T")
Text = Mapping[str, str]
PlainData: TypeAlias = Any
"""A value as ``json.load`` returns it; its type is known at run time only."""
JsonObject: TypeAlias = Mapping[str, PlainData]
"""An object of a JSON or TOML file."""
AUTO = "auto"
"""Default word for a setting without a value: the system chooses."""
_ENDLESS = (1 << 63) - 1
"""A bound that goes without saying: the largest integer of 64 bits."""
_SIGNS = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
_YES_NO = {"yes": True, "no": False}


# --------------------------------------------------------------------------------------- checks


def is_int(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is an integer; ``True`` and ``False`` are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: object) -> TypeGuard[str]:
    """Return whether ``value`` is a text that UTF-8 can encode."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether ``value`` is an integer or a float; ``True`` and ``False`` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(names: Iterable[str]) -> str:
    """Return the words of a refusal for a value that is none of ``names``."""
    return "one of " + ", ".join(names)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word closest to ``word``, or nothing."""
    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def require(good: bool, name: str, value: object, expected: str) -> None:
    """Raise ``ValueError`` unless ``good``."""
    if not good:
        msg = f"{name} is {value!r}; it must be {expected}"
        raise ValueError(msg)


def require_known(given: Iterable[str], known: Collection[str], needed: Iterable[str]) -> None:
    """Raise ``ValueError`` for an unknown name of a setting, or a needed one that is missing."""
    names = set(given)
    for name in sorted(names - set(known)):
        msg = f"unknown setting {name!r}; known are {', '.join(sorted(known))}"
        raise ValueError(msg)
    for name in needed:
        if name not in names:
            msg = f"the setting {name!r} is missing"
            raise ValueError(msg)


def look_up(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return ``known[name]``; ``ValueError`` with a suggestion if there is no such name."""
    if name not in known:
        msg = f"{what} is {name!r}; it must be {one_of(known)}{nearest(name, known)}"
        raise ValueError(msg)
    return known[name]


# -------------------------------------------------------------------------------- one declaration


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its type, range, default and meaning."""

    help: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: Collection[str] = ()
    """Allowed words; empty: any text."""
    none: str = AUTO
    """Word for ``None`` in texts, if the setting may be ``None``."""
    name: str = ""
    kind: type = str
    """Type of the value, or of each value of a tuple: int, float, str or bool."""
    is_tuple: bool = False
    """The value is a tuple of ``kind``; texts separate its elements by commas."""
    is_optional: bool = False
    default: Any = None
    """``dataclasses.MISSING`` if a value must be given."""

    def expected(self, none: str = "None") -> str:
        """Return what a value may be, as the end of a sentence; ``none`` stands for ``None``."""
        kinds = {int: "an integer", float: "a finite number", bool: "True or False", str: "a text"}
        words = [one_of(self.choices) if self.choices else kinds[self.kind]]
        for name, sign in _SIGNS.items():
            bound = getattr(self, name)
            if bound is not None and bound < _ENDLESS:
                words.append(f"{'and ' if len(words) > 1 else ''}{sign} {bound:,}")
        return " ".join(words) + (f", or {none}" if self.is_optional else "")

    def check(self, value: object, name: str = "") -> None:
        """Raise ``ValueError`` unless ``value`` is allowed; for a tuple, name its bad element."""
        name = name or self.name
        if value is None and self.is_optional:
            return
        if self.is_tuple:
            require(isinstance(value, tuple), name, value, "a list")
        for each in value if isinstance(value, tuple) and self.is_tuple else (value,):
            require(self._is_allowed(each), name, each, self.expected())
            if name.endswith("_us") and is_number(each) and self.at_most is None:
                require(each < TOO_LONG_US, name, each, "less than 2^61")

    def _is_allowed(self, value: Any) -> bool:
        if self.kind is bool or self.kind is str:
            return isinstance(value, self.kind) and (not self.choices or value in self.choices)
        good = is_int(value)
        if self.kind is float:  # an integer may be too large for one
            good = is_number(value) and abs(value) <= sys.float_info.max
        return (
            good
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def read(self, text: str, name: str = "") -> Any:
        """Return the value that ``text`` stands for, checked."""
        text, name = text.strip(), name or self.name
        if self.is_optional and text == self.none:
            return None
        parts = text.split(",") if self.is_tuple else (text,)
        values = tuple([self._parse(each.strip(), name) for each in parts])
        value = values if self.is_tuple else values[0]
        self.check(value, name)
        return value

    def _parse(self, part: str, name: str) -> int | float | str | bool:
        if self.kind is str:
            if self.choices:
                look_up(name, part, dict.fromkeys(self.choices))
            return part
        if self.kind is bool:
            require(part in _YES_NO, name, part, "yes or no")
            return _YES_NO[part]
        try:
            value: int | float = self.kind(part)
        except ValueError:
            require(False, name, part, self.expected(self.none))
            raise
        return value

    def write(self, value: object) -> str:
        """Return the text that :meth:`read` reads as ``value``."""
        if value is None:
            return self.none
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, tuple | list):
            return ",".join(map(self.write, value))
        return str(value).removesuffix(".0")


def settings_of(kind: type) -> Mapping[str, Setting]:
    """Return the settings of a dataclass or NamedTuple, by name, in the order of its fields."""
    known: Any = kind  # an instance of type need not be hashable
    found: Mapping[str, Setting] = _settings_of(known)
    return found


@cache
def _settings_of(kind: Any) -> Mapping[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: _declaration(name, hints[name], default)
        for name, default in defaults_of(kind).items()
        if get_origin(hints[name]) is Annotated
    }


def defaults_of(kind: Any) -> dict[str, PlainData]:
    """Return the fields of a dataclass or NamedTuple with their defaults, or ``MISSING``."""
    if is_dataclass(kind):
        return {each.name: each.default for each in fields(kind)}
    return {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}


def _declaration(name: str, hint: object, default: object) -> Setting:
    declared: Setting
    hinted, declared = get_args(hint)
    choices = get_args(hinted) if isinstance(hinted, UnionType) else (hinted,)
    [chosen] = [each for each in choices if each is not NoneType]
    is_tuple = get_origin(chosen) is tuple
    return replace(
        declared,
        name=name,
        kind=get_args(chosen)[0] if is_tuple else chosen,
        is_tuple=is_tuple,
        is_optional=len(choices) > 1,
        default=default,
    )


_signature_of = cache(signature)


class ChecksArguments:
    """Base of dataclasses that refuse wrong arguments with one sentence."""

    __slots__ = ()

    def __new__(cls, *given: object, **named: object) -> Self:
        """Raise ``ValueError`` for an argument that is missing, unknown, or one too many."""
        try:
            _signature_of(cls.__init__).bind(None, *given, **named)
        except TypeError as error:
            words = ", ".join([*map(repr, given), *(f"{k}={v!r}" for k, v in named.items())])
            takes = ", ".join(defaults_of(cls))
            msg = f"{cls.__name__}({words}) does not fit; it takes {takes} ({error})"
            raise ValueError(msg) from error
        return super().__new__(cls)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Return the class and the arguments of a copy, which :meth:`__new__` needs."""
        return type(self), tuple([getattr(self, name) for name in defaults_of(type(self))])


# -------------------------------------------------------------------------------- many settings


class Settings:
    """Base of dataclasses of settings: checked when built, written as plain data."""

    __slots__ = ()

    gone: ClassVar[JsonObject] = MappingProxyType({})
    """Settings of earlier versions, each with the one value that files may still have."""
    new: ClassVar[JsonObject] = MappingProxyType({})
    """Settings that files of earlier versions lack, each with the value by which they were made."""

    def __post_init__(self) -> None:
        for name, each in settings_of(type(self)).items():
            value = in_unit_of_name(name, getattr(self, name))
            object.__setattr__(self, name, value)
            each.check(value)
        self._check_together()

    def _check_together(self) -> None:
        """Raise ``ValueError`` for settings that are good one by one but not together."""

    @classmethod
    def of(cls, **given: PlainData) -> Self:
        """Build from settings whose times need no ``_us``: ``of(size="6 hours", tasks=4)``.

        Raise ``ValueError`` with one sentence for an unknown or missing name or a bad value.
        """
        known = defaults_of(cls)
        values = resolve_times(given, known)
        require_known(values, known, [name for name in known if known[name] is MISSING])
        for name, each in settings_of(cls).items():
            if each.is_tuple and isinstance(given_list := values.get(name), list):
                values[name] = tuple(given_list)
        try:
            return cls(**values)
        except ValueError as error:
            times = {f"{name}_us": name for name in given if name not in known}
            raise ValueError(in_durations(str(error), times)) from error

    def to_json(self) -> dict[str, PlainData]:
        """Return plain data; :meth:`from_json` reads it back."""
        return {name: getattr(self, name) for name in defaults_of(type(self))}

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Build from plain data; ``ValueError`` for an unknown or missing name or a bad value."""
        known = defaults_of(cls)
        data = {name: each for name, each in data.items() if (name, each) not in cls.gone.items()}
        require_known(data, known, [name for name in known if known[name] is MISSING])
        values = cls._decoded({**cls.new, **data})
        for name, each in settings_of(cls).items():
            if name.endswith("_us") and name in values:  # a file has no durations with a unit
                each.check(values[name])
        return cls(**values)

    @classmethod
    def _decoded(cls, data: JsonObject) -> dict[str, PlainData]:
        """Return the arguments of the class from plain data."""
        return dict(data)


def schema(*kinds: type, without: Collection[str] = (), **defaults: object) -> dict[str, Setting]:
    """Return the settings of several classes in one mapping, some with another default."""
    found = {
        name: each
        for kind in kinds
        for name, each in settings_of(kind).items()
        if name not in without
    }
    for name, default in defaults.items():
        found[name] = replace(found[name], default=default)
    return found


def read_settings(texts: Text, known: Mapping[str, Setting]) -> dict[str, PlainData]:
    """Return the value of every known setting: read from ``texts``, else its default.

    Raises ``ValueError`` for an unknown name, with a suggestion, and for a bad value.
    """
    for name in texts:
        if name not in known:
            msg = f"there is no setting {name!r}{nearest(name, known)}; known are "
            raise ValueError(msg + ", ".join(known))
    return {
        name: each.read(texts[name]) if name in texts else each.default
        for name, each in known.items()
    }


def pick(kind: type[T], values: JsonObject, **others: object) -> T:
    """Build an object of class ``kind`` from those of ``values`` that are settings of it."""
    own = {name: values[name] for name in settings_of(kind) if name in values}
    return kind(**{**own, **others})
