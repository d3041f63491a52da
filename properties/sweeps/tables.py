"""Tables of results as Parquet."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.sweep.experiment import Experiment
from sim.sweep.jobs import Figure
from sim.sweep.results import Columns
from sim.sweep.store import whole


def write_table(path: Path, columns: Columns, experiment: Experiment) -> None:
    """Write a table, which is there as a whole or not at all; or :class:`NotWritten`."""
    measures = {measure.name for measure in experiment.measures}
    arrays = {
        name: _array(values, pa.float64() if name in measures else pa.int64())
        for name, values in columns.items()
    }
    with whole(path) as beside:
        pq.write_table(pa.table(arrays), beside)


def _array(values: Sequence[Figure], otherwise: pa.DataType) -> pa.Array:
    """A column of texts, of floats, or of the kind that it has if it is empty or of integers."""
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if any(isinstance(value, float) for value in values):
        otherwise = pa.float64()
    return pa.array(values, otherwise)


def read_table(path: Path) -> Columns:
    """The table in a file that :func:`write_table` wrote."""
    columns: Columns = pq.read_table(path).to_pydict()
    return columns
