"""Results of sweeps, as they lie in a folder (docs/sweeps.md), for reports.

Every refusal is a :class:`UsageError` with one sentence that names the file.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyarrow.lib import ArrowException

from properties.errors import UsageError
from properties.sweeps.tables import read_table
from sim.report.contents import Entry, Report
from sim.report.numbers import Columns
from sim.report.stored import entry_of
from sim.report.words import version
from sim.sweep.experiment import EFFORTS

ROOMS = ("slack", "join", "grouping", "watermark", "script")
"""In this order; others behind them."""


def read(folder: Path, efforts: Sequence[str] = tuple(reversed(EFFORTS))) -> Report:
    """Every experiment in the folder, in the first of these efforts in which it was run."""
    if folder.is_file():
        raise UsageError(f"{str(folder)!r} is a file; results of sweeps are a folder")
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}; `straggler sweep` makes one")
    found: dict[str, Path] = {}
    for effort in efforts:
        for path in sorted(folder.glob(f"*-{effort}.json")):
            found.setdefault(path.name.removesuffix(f"-{effort}.json"), path)
    if not found:
        asked = " or ".join(efforts)
        begun = ", only runs; `straggler sweep` goes on with them" if _is_begun(folder) else ""
        raise UsageError(f"there are no results of a {asked} sweep in {str(folder)!r}{begun}")
    entries = [_read_entry(path) for path in found.values()]
    _refuse_mixed(entries)
    return tuple(sorted(entries, key=_place))


def _is_begun(folder: Path) -> bool:
    """Whether there are runs of a sweep that has not come to its first experiment's end."""
    return any(folder.glob("runs/*.json"))


def _place(entry: Entry) -> tuple[int, str, str]:
    number = ROOMS.index(entry.room) if entry.room in ROOMS else len(ROOMS)
    return number, entry.room, entry.name


def _read_entry(path: Path) -> Entry:
    record = _read_record(path)
    columns = _read_columns(path.with_suffix(".parquet"))
    try:
        entry = entry_of(record, columns)
        if f"{entry.name}-{entry.effort}" != path.stem:
            msg = f"they are those of {entry.name}, {entry.effort}"
            raise ValueError(msg)
        return entry
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{str(path)!r} and its table are not what a sweep has stored"
            f" ({type(error).__name__}: {error}); `straggler sweep` writes them again"
        ) from error


def _read_record(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(
            f"{str(path)!r} is damaged ({error}); `straggler sweep` writes it again"
        ) from error


def _read_columns(path: Path) -> Columns:
    try:
        return read_table(path)
    except FileNotFoundError:
        raise UsageError(
            f"the table of results {str(path)!r} is missing; `straggler sweep` writes it again"
        ) from None
    except (ArrowException, OSError) as error:
        raise UsageError(
            f"{str(path)!r} is not a Parquet file that can be read;"
            " `straggler sweep` writes it again"
        ) from error


def _refuse_mixed(entries: Iterable[Entry]) -> None:
    """Refuse results of several versions of the same code: they cannot be compared."""
    first: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = first.setdefault((entry.room, entry.run), entry)
        if other.code != entry.code:
            raise UsageError(
                f"{other.name} was run with code {version(other.code)} and {entry.name} with"
                f" {version(entry.code)}; `straggler sweep` brings them together"
            )
