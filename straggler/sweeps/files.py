"""Files of sweep results: the table as Parquet, and a folder read as a report (docs/sweeps.md).

A refused file raises :class:`UsageError` with one sentence that names it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from model.vocabulary.settings import PlainData
from sim.report.contents import Entry, Report
from sim.report.entries import entry_of
from sim.report.words import version
from sim.sweep import results
from sim.sweep.experiment import EFFORTS, Experiment
from sim.sweep.jobs import Figure
from sim.sweep.store import replace_when_complete
from straggler.errors import UsageError
from straggler.inputs.text_files import read_json
from straggler.rooms import sort_names


def write_table(path: Path, columns: results.Columns, experiment: Experiment) -> None:
    """Write a complete Parquet file or none; raise :class:`WriteFailed` if that fails."""
    measures = {measure.name for measure in experiment.measures}
    arrays = {
        name: _array(values, pa.float64() if name in measures else pa.int64())
        for name, values in columns.items()
    }
    with replace_when_complete(path) as beside:
        pq.write_table(pa.table(arrays), beside, write_page_checksum=True)


def _array(values: Sequence[Figure], otherwise: pa.DataType) -> pa.Array:
    """Return a column of texts or of floats; ``otherwise`` is the type of any other column."""
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if any(isinstance(value, float) for value in values):
        otherwise = pa.float64()
    return pa.array(values, otherwise)


def read_table(path: Path) -> results.Columns:
    """Return the table in a file that :func:`write_table` wrote."""
    columns: results.Columns = pq.read_table(path, page_checksum_verification=True).to_pydict()
    return columns


# -------------------------------------------------------------------------------- a report


def read_report(folder: Path, efforts: Sequence[str] = tuple(reversed(EFFORTS))) -> Report:
    """Return every experiment in a folder, in the first of these efforts that has results."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}; `straggler sweep` makes one")
    found: dict[str, Path] = {}
    for effort in efforts:
        for path in sorted(folder.glob(f"*-{effort}.json")):
            found.setdefault(path.name.removesuffix(f"-{effort}.json"), path)
    if not found:
        asked = " or ".join(efforts)
        # A sweep that has not finished its first experiment has stored only runs.
        has_runs = any(folder.glob("runs/*.json"))
        begun = ", only runs; `straggler sweep` resumes them" if has_runs else ""
        raise UsageError(f"there are no results of a {asked} sweep in {str(folder)!r}{begun}")
    entries = [_read_entry(path) for path in found.values()]
    _refuse_mixed(entries)
    order = sort_names(entry.room for entry in entries)
    return tuple(sorted(entries, key=lambda entry: (order.index(entry.room), entry.name)))


def _read_entry(path: Path) -> Entry:
    record = _read_record(path)
    try:
        entry = entry_of(record)
        if f"{entry.name}-{entry.effort}" != path.stem:
            raise ValueError(f"it is the record of {entry.name}, {entry.effort}")
        return entry
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{str(path)!r} is not what a sweep has stored"
            f" ({type(error).__name__}: {error}); `straggler sweep` writes it again"
        ) from error


def _read_record(path: Path) -> PlainData:
    try:
        return read_json(path)
    except ValueError as error:
        raise UsageError(
            f"{str(path)!r} is damaged ({error}); `straggler sweep` writes it again"
        ) from error


def _refuse_mixed(entries: Iterable[Entry]) -> None:
    """Refuse results of several versions of the same code: they cannot be compared."""
    first: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = first.setdefault((entry.room, entry.run), entry)
        if other.code != entry.code:
            raise UsageError(
                f"{other.name} was run with code {version(other.code)} and {entry.name} with"
                f" {version(entry.code)}; `straggler sweep` runs both with one version"
            )
