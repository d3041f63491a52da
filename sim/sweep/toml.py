"""Values of a TOML table, each of the kind that is asked for.

Every refusal is a ``ValueError`` with one sentence that names the place and the offending value.
"""

from collections.abc import Collection, Mapping
from math import isfinite
from typing import NamedTuple

from model.vocabulary.settings import JsonObject, PlainData, look_up, nearest

_KINDS: Mapping[type, str] = {
    str: "a text",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a table",
}


class Table(NamedTuple):
    """A table of a file, with its place there."""

    values: JsonObject
    place: str = ""
    """Its name, with a full stop behind it; empty: the file itself."""

    def refuse_others(self, known: Collection[str]) -> None:
        """Refuse keys that have no meaning here."""
        for key in self.values:
            if key not in known:
                known_ones = ", ".join(known)
                msg = f"there is no {self.place}{key}{nearest(key, known)}; known are {known_ones}"
                raise ValueError(msg)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self.values

    def text(self, key: str, default: str | None = None) -> str:
        """A text; empty ones say nothing."""
        if default is not None and key not in self.values:
            return default
        value = str(self._value(key, str)).strip()
        self.require(bool(value), key, value, "a text that says something")
        return value

    def word(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """One of some words."""
        value = self.text(key, default)
        if default is not None and value == default:
            return value
        return look_up(self.place + key, value, {each: each for each in known})

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer."""
        if default is not None and key not in self.values:
            return default
        return int(self._value(key, int))

    def number(self, key: str) -> float | None:
        """A finite integer or float; ``None`` if it is not there."""
        if key not in self.values:
            return None
        value = float(self._value(key, float))
        self.require(isfinite(value), key, value, "a finite number")
        return value

    def list(self, key: str) -> list[PlainData]:
        """A list; empty if it is not there."""
        return list(self._value(key, list)) if key in self.values else []

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if it is not there."""
        for each in self.list(key):
            self.require(isinstance(each, str), key, each, "a list of texts")
        return tuple(self.list(key))

    def table(self, key: str) -> "Table":
        """A table; empty if it is not there."""
        values = self._value(key, dict) if key in self.values else {}
        return Table(values, f"{self.place}{key}.")

    def tables(self, key: str) -> "tuple[Table, ...]":
        """Those of a list, numbered from 1."""
        for each in self.list(key):
            self.require(isinstance(each, dict), key, each, "a list of tables")
        return tuple(
            [Table(each, f"{self.place}{key} {n}, ") for n, each in enumerate(self.list(key), 1)]
        )

    def require(self, good: bool, key: str, value: object, expected: str) -> None:
        """Refuse a value that is not as expected."""
        if not good:
            msg = f"{self.place}{key} is {value!r}; it must be {expected}"
            raise ValueError(msg)

    def _value(self, key: str, kind: type) -> PlainData:
        if key not in self.values:
            msg = f"{self.place}{key} is missing"
            raise ValueError(msg)
        value = self.values[key]
        kinds = (int, float) if kind is float else (kind,)
        good = isinstance(value, kinds) and not isinstance(value, bool)
        self.require(good, key, value, _KINDS[kind])
        return value
