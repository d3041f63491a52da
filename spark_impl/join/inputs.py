"""The two inputs of a join as one table.

A column is taken as it is, or in a wider type that holds all its values; nothing is rounded, cut
off or guessed.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.join import R, S
from spark_impl.join.task import COLUMNS
from spark_impl.runtime.histories import InputProblem

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TAKEN = {
    "bigint": _INTEGERS,
    "double": ("tinyint", "smallint", "int", "float", "double"),
    "string": ("string",),
}
"""Types whose values another one holds."""
_TIME = "event_time_us"
_TIMESTAMP = "timestamp"


def both(r: DataFrame, s: DataFrame, order: str) -> DataFrame:
    """Both inputs in one table, told apart by ``stream``; the column ``order`` becomes ``seq``.

    Raises :class:`InputProblem` when a column is missing or of a type that is not taken.
    """
    parts = []
    for stream, rows in ((R, r), (S, s)):
        sources = {**{name: name for name in COLUMNS}, "seq": order}
        columns = [_column(stream, rows, source).alias(to) for to, source in sources.items()]
        parts.append(rows.select(F.lit(stream).alias("stream"), *columns))
    return parts[0].unionByName(parts[1])


def _column(stream: str, rows: DataFrame, name: str) -> Column:
    if name not in rows.columns:
        msg = f"the input {stream} has no column {name!r}; it has {rows.columns}"
        raise InputProblem(msg)
    given = rows.schema[name].dataType.simpleString()
    if name == _TIME and given == _TIMESTAMP:
        return F.unix_micros(name)
    taken = _TAKEN[COLUMNS[name]]
    if given not in taken:
        wanted = ", ".join((*taken, _TIMESTAMP) if name == _TIME else taken)
        msg = f"the column {name!r} of the input {stream} is {given}; it can be {wanted}"
        raise InputProblem(msg)
    return F.col(name).cast(COLUMNS[name])
