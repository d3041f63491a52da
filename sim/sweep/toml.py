"""Tables of a TOML file, whose values are checked when they are read.

Every refusal is a ``ValueError`` with one sentence that names the place and the offending value.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from model.vocabulary.settings import JsonObject, PlainData, Setting, look_up, nearest

_KINDS: Mapping[type, str] = {str: "a text", list: "a list", dict: "a table"}
_NUMBER = Setting(kind=float)


class Table(NamedTuple):
    """A table of a file, with its place there."""

    values: JsonObject
    place: str = ""
    """Name of the table with a full stop behind it; empty: the file itself."""

    def refuse_others(self, known: Collection[str]) -> None:
        """Refuse keys that are not known."""
        for key in self.values:
            if key not in known:
                known_ones = ", ".join(known)
                msg = f"there is no {self.place}{key}{nearest(key, known)}; known are {known_ones}"
                raise ValueError(msg)

    def has(self, key: str) -> bool:
        """Return whether the key is there."""
        return key in self.values

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that is not empty."""
        if default is not None and key not in self.values:
            return default
        value = str(self._value(key, str)).strip()
        self.require(bool(value), key, value, "a text that is not empty")
        return value

    def word(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """Return one of the known words."""
        value = self.text(key, default)
        if default is not None and value == default:
            return value
        return look_up(self.place + key, value, {each: each for each in known})

    def number(self, key: str) -> float | None:
        """Return a finite number; ``None`` if the key is missing."""
        value = self.checked(key, _NUMBER, None)
        return None if value is None else float(value)

    def checked(self, key: str, setting: Setting, default: PlainData) -> PlainData:
        """Return a value that the setting allows, or the default if the key is missing."""
        if key in self.values:
            setting.check(self.values[key], self.place + key)
        return self.values.get(key, default)

    def list(self, key: str) -> list[PlainData]:
        """Return a list; empty if the key is missing."""
        return list(self._value(key, list)) if key in self.values else []

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; empty if the key is missing."""
        for each in self.list(key):
            self.require(isinstance(each, str), key, each, "a list of texts")
        return tuple(self.list(key))

    def table(self, key: str, known: Collection[str] = ()) -> "Table":
        """Return a table, empty if the key is missing; refuse keys that are not ``known``."""
        values = self._value(key, dict) if key in self.values else {}
        table = Table(values, f"{self.place}{key}.")
        if known:
            table.refuse_others(known)
        return table

    def tables(self, key: str) -> "tuple[Table, ...]":
        """Return the tables of a list, numbered from 1."""
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
        self.require(isinstance(value, kind), key, value, _KINDS[kind])
        return value
