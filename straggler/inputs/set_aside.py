"""Rows of a user's file that could not be used: told by kind, each with the first places.

Rules of this file:

1. A row without a readable time, key or identity is set aside, as Landing sets it aside. A row
   without a readable value stays, with the value NaN; every query refuses it. A row without a
   readable cell of another column stays.
2. A row counts once, with its first flaw.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model.vocabulary.settings import JsonObject
from straggler.errors import counted

PLACES = 5
"""Most places that are named for a kind of flaw."""
KINDS = 8
"""Most kinds of flaws that are named."""


class Flaw(NamedTuple):
    """The reason why a row cannot be used as it is."""

    number: int
    """Number of the row: its first line, or its place in a Parquet file."""
    reason: str
    """Kind of the flaw, the same for all rows that have it."""
    column: str | None = None
    """Column that has the flaw; ``None``: the row as a whole."""
    text: str = ""
    """Cell of the row; empty if the reason says all."""


class Kind(NamedTuple):
    """Rows with the same flaw."""

    reason: str
    column: str | None
    total: int
    places: tuple[int, ...]
    """Numbers of the first rows."""
    text: str
    """Cell of the first of them."""

    def sentence(self, unit: str) -> str:
        """Return column, first text, reason and first places."""
        where = "" if self.column is None else f"{self.column!r} "
        has = f"has {self.text!r}, which " if self.text else ""
        listed = ", ".join(f"{place:,}" for place in self.places)
        more = self.total - len(self.places)
        rest = f" and {more:,} more" if more else ""
        return f"{where}{has}{self.reason} ({unit}{'' if self.total == 1 else 's'} {listed}{rest})"

    def to_json(self) -> JsonObject:
        """Return the kind as plain data."""
        return self._asdict() | {"places": list(self.places)}


@dataclass(frozen=True, slots=True)
class SetAside:
    """The rows of a file that cannot be used, or not as they are."""

    file: str
    rows: int
    """Number of rows of the file."""
    unit: str
    """Kind of the places: ``line`` or ``row``."""
    gone: tuple[Kind, ...] = ()
    """Kinds of rows that are set aside."""
    lacking: tuple[Kind, ...] = ()
    """Kinds of rows that stay without a value."""
    unread: tuple[Kind, ...] = ()
    """Kinds of rows that stay without the value of a column that a condition names."""

    @property
    def count(self) -> int:
        """Number of rows that are set aside."""
        return sum(kind.total for kind in self.gone)

    @property
    def sentence(self) -> str:
        """All flaws of the file, without a full stop; empty if there are none."""
        parts = []
        if self.gone:
            parts.append(f"{self.count:,} of {counted(self.rows, 'row')} set aside: ")
            parts[-1] += _listing(self.gone, self.unit)
        if self.lacking:
            n = sum(kind.total for kind in self.lacking)
            stay = "stays, refused by every query" if n == 1 else "stay, refused by every query"
            parts.append(f"{counted(n, 'row')} without a finite value {stay}: ")
            parts[-1] += _listing(self.lacking, self.unit)
        if self.unread:
            n = sum(kind.total for kind in self.unread)
            parts.append(f"{counted(n, 'cell')} taken as missing: ")
            parts[-1] += _listing(self.unread, self.unit)
        return f"{self.file}: {'; '.join(parts)}" if parts else ""

    def to_json(self) -> JsonObject:
        """Return the same as plain data."""
        return {
            "file": self.file,
            "rows": self.rows,
            "set_aside": self.count,
            "unit": self.unit,
            "reasons": [kind.to_json() for kind in self.gone],
            "without_value": [kind.to_json() for kind in self.lacking],
            "unread": [kind.to_json() for kind in self.unread],
        }


def _listing(kinds: Sequence[Kind], unit: str) -> str:
    shown = [kind.sentence(unit) for kind in kinds[:KINDS]]
    rest = sum(kind.total for kind in kinds[KINDS:])
    return ", ".join([*shown, *([f"{counted(rest, 'row')} for other reasons"] if rest else [])])


def kinds_of(flaws: Iterable[Flaw]) -> tuple[Kind, ...]:
    """Return the kinds of flaws, the most frequent first."""
    by_kind: dict[tuple[str, str | None], list[Flaw]] = {}
    for flaw in sorted(flaws, key=lambda flaw: flaw.number):
        by_kind.setdefault((flaw.reason, flaw.column), []).append(flaw)
    kinds = (
        Kind(*kind, len(rows), tuple(row.number for row in rows[:PLACES]), rows[0].text)
        for kind, rows in by_kind.items()
    )
    return tuple(sorted(kinds, key=lambda kind: (-kind.total, kind.places)))
