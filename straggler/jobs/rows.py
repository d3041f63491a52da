"""Rows of the inputs of a job: their strategies, how Spark gets them, and answers as texts.

Rules of this file:

1. Floats are dyadic fractions, whose sums are exact in every order.
2. No integer is drawn from 100 or more, as ``strategies/networks`` says.
3. Event times are integer microseconds; all other values are what PySpark takes.
"""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st
from pyspark.sql import types as sql

from straggler.errors import UsageError
from straggler.jobs.schemas import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Answer: TypeAlias = tuple[str, ...]
"""One row that a job answers, as texts of its columns."""
WORDS = ("a", "b", "c", "", "ä", "a b")
INPUT_COLUMN = "straggler_input"
"""Column of the number of an input, while several are one source."""
RECORDED_MAX = 10_000
"""Most recorded rows that are read, the earliest ones."""
FEW = 5
"""Most rows without an event time whose numbers are told."""
RARE = 8
"""One of so many values is special: a null, or NaN."""


class Row(NamedTuple):
    """A row of an input."""

    source: int
    """Number of the input."""
    time_us: int
    """Event time (us since the epoch)."""
    values: tuple[Any, ...]
    """Values of the other columns, in the order of the schema."""

    @property
    def text(self) -> str:
        """The row as a text that equal rows share."""
        return repr((self.source, self.time_us, self.values))


@dataclass(frozen=True)
class Input:
    """One input of a job, and how its rows are drawn."""

    name: str
    schema: sql.StructType
    event_time: str
    keys: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    """Columns that identify a row: rows that agree in them are copies of one row."""
    given: Mapping[str, st.SearchStrategy[Any]] = field(default_factory=dict)
    is_united: bool = False
    """True if rows of several inputs are copies if they agree in what identifies them."""

    @property
    def others(self) -> list[sql.StructField]:
        """Columns besides the event time."""
        return [each for each in self.schema.fields if each.name != self.event_time]

    @property
    def is_ntz(self) -> bool:
        """Return whether event times have no zone."""
        return isinstance(self.schema[self.event_time].dataType, sql.TimestampNTZType)

    def values(self) -> st.SearchStrategy[tuple[Any, ...]]:
        """Draw the values of a row besides its event time."""
        return st.tuples(*[self._column(each) for each in self.others])

    def _column(self, column: sql.StructField) -> st.SearchStrategy[Any]:
        if column.name in self.given:
            return self.given[column.name]
        if column.name in self.keys:
            few = keys_of(column.dataType)
            if few:  # half of the rows have one of them
                return st.sampled_from([few[0]] * len(few) + list(few))
        strategy = values_of(column.dataType)
        if not column.nullable:
            return strategy
        return st.integers(1, RARE).flatmap(lambda n: st.none() if n == RARE else strategy)


def keys_of(kind: sql.DataType) -> Sequence[Any]:
    """Return a few keys of a type; none for a type that has no natural ones."""
    if isinstance(kind, sql.StringType):
        return WORDS[:4]
    if isinstance(kind, sql.IntegralType):
        return (1, 2, 3, 0)
    return ()


def values_of(kind: sql.DataType) -> st.SearchStrategy[Any]:
    """Draw values of a Spark type, never null; raise ``UsageError`` for an unknown type."""
    if isinstance(kind, sql.ArrayType):
        return st.lists(_items(kind.elementType, kind.containsNull), max_size=2)
    if isinstance(kind, sql.MapType):
        values = _items(kind.valueType, kind.valueContainsNull)
        return st.dictionaries(values_of(kind.keyType), values, max_size=2)
    if isinstance(kind, sql.StructType):
        return st.fixed_dictionaries(
            {each.name: _items(each.dataType, each.nullable) for each in kind.fields}
        )
    if isinstance(kind, sql.DecimalType):
        unit = Decimal(1).scaleb(-kind.scale)
        most = min(9, 10**kind.precision - 1)
        return st.integers(-most, most).map(lambda n: n * unit)
    for known, strategy in _ATOMS.items():
        if isinstance(kind, known):
            return strategy
    raise UsageError(f"no values of type {kind.simpleString()} are known; give columns=")


def _items(kind: sql.DataType, has_nulls: bool) -> st.SearchStrategy[Any]:
    return st.none() | values_of(kind) if has_nulls else values_of(kind)


def _moment(zone: dt.tzinfo | None) -> st.SearchStrategy[dt.datetime]:
    start = dt.datetime(2026, 3, 29, tzinfo=zone)
    return st.integers(0, 96).map(lambda step: start + step * dt.timedelta(minutes=5))


_FLOATS = st.integers(0, 96).map(lambda n: {0: math.nan, 1: -0.0, 2: 0.0}.get(n, float(n - 32) / 4))
_ATOMS: dict[type[sql.DataType], st.SearchStrategy[Any]] = {
    sql.StringType: st.sampled_from(WORDS),
    sql.VarcharType: st.sampled_from(WORDS[:5]),
    sql.CharType: st.sampled_from(WORDS[:3]),
    sql.BooleanType: st.booleans(),
    sql.ByteType: st.integers(-9, 90),
    sql.ShortType: st.integers(-9, 90),
    sql.IntegerType: st.integers(-9, 90),
    sql.LongType: st.integers(-9, 90),
    sql.FloatType: _FLOATS,
    sql.DoubleType: _FLOATS,
    sql.BinaryType: st.sampled_from([b"", b"a", b"\x00\xff"]),
    sql.DateType: st.integers(0, 9).map(lambda n: dt.date(2026, 3, 25) + dt.timedelta(days=n)),
    sql.TimestampType: _moment(dt.UTC),
    sql.TimestampNTZType: _moment(None),
    sql.DayTimeIntervalType: st.integers(0, 90).map(lambda n: dt.timedelta(seconds=n)),
}


# ----------------------------------------------------------------------------------- to Spark


class Frames:
    """Makes frames of rows in a session, without a Spark job."""

    def __init__(self, spark: "SparkSession", inputs: Sequence[Input]) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise UsageError("the session is one of Spark Connect; a classic session is needed")
        self.spark, self.inputs = spark, inputs
        self.is_single = len(inputs) == 1
        packed = [sql.StructField(f"r{n}", each.schema) for n, each in enumerate(inputs)]
        fields = [sql.StructField(INPUT_COLUMN, sql.IntegerType()), *packed]
        self.packed = inputs[0].schema if self.is_single else sql.StructType(fields)
        """Schema of the rows of all inputs: the number of an input, and a column for each."""

    def frame(self, source: int, rows: Sequence[Row]) -> "DataFrame":
        """Return the rows of an input, all of which belong to it, in this order."""
        of = self.inputs[source]
        return self._frame(of.schema, [_cells(of, row) for row in rows])

    def all(self, rows: Sequence[Row]) -> "DataFrame":
        """Return rows of all inputs in this order, packed if there are several."""
        if self.is_single:
            return self.frame(0, rows)
        packed = []
        for row in rows:
            of = self.inputs[row.source]
            cells = dict(zip(of.schema.names, _cells(of, row), strict=True))
            others = [cells if n == row.source else None for n in range(len(self.inputs))]
            packed.append((row.source, *others))
        return self._frame(self.packed, packed)

    def _frame(self, schema: sql.StructType, rows: Sequence[Sequence[Any]]) -> "DataFrame":
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        arrow = to_arrow_schema(schema, timezone="UTC")
        arrays = [pa.array([row[n] for row in rows], kind.type) for n, kind in enumerate(arrow)]
        return self.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), schema)


def _cells(of: Input, row: Row) -> tuple[Any, ...]:
    """Return the values of all columns of a row."""
    at = of.schema.names.index(of.event_time)
    moment = EPOCH + dt.timedelta(microseconds=row.time_us)
    moment = moment.replace(tzinfo=None) if of.is_ntz else moment
    return (*row.values[:at], moment, *row.values[at:])


def recorded_rows(
    spark: "SparkSession", inputs: Sequence[Input], given: Any
) -> tuple[tuple[list[Row], ...], list[str]]:
    """Return recorded rows of each input by event time, and sentences on those left out.

    ``given`` is a Spark or pandas DataFrame or a list of dicts; a dict of them for several inputs.
    Raise ``UsageError`` if there are none.
    """
    from pyspark.sql import DataFrame

    if given is None:
        return (), []
    found: list[list[Row]] = []
    left_out: list[str] = []
    unknown = set(given) - {of.name for of in inputs} if isinstance(given, dict) else set()
    if unknown:
        names = ", ".join(sorted(map(repr, unknown)))
        raise UsageError(f"rows names {names}, which is no input of the job")
    for source, of in enumerate(inputs):
        if isinstance(given, dict) and of.name not in given:
            raise UsageError(f"rows has no {of.name!r}; it must have the rows of every input")
        rows = given[of.name] if isinstance(given, dict) else given
        try:
            if hasattr(rows, "iloc"):  # Spark takes the columns of pandas by their places
                own = {str(name).lower(): name for name in rows.columns}
                rows = rows[[own.get(name.lower(), name) for name in of.schema.names]]
            frame = rows if isinstance(rows, DataFrame) else spark.createDataFrame(rows, of.schema)
            at = quoted(of.event_time)
            timed = frame.select(*map(quoted, of.schema.names)).where(frame[at].isNotNull())
            kept = timed.orderBy(at).limit(RECORDED_MAX).to(of.schema)
            found.append(rows_of(kept, of, source))
            number = timed.count()
            untimed, beyond = frame.count() - number, number - len(found[-1])
            which = _untimed(frame, at) if untimed else ""
        except Exception as error:
            first = str(error).partition("\n")[0]
            raise UsageError(f"the recorded rows do not fit the schema: {first}") from error
        if untimed or beyond:
            left_out.append(
                f"recorded rows of {of.name} are left out: {untimed} without an event time{which}, "
                f"{beyond} beyond the earliest {RECORDED_MAX:,}"
            )
        if not found[-1]:
            raise UsageError(f"there are no recorded rows of {of.name} with an event time")
    return tuple(found), left_out


def _untimed(frame: "DataFrame", at: str) -> str:
    """Return the numbers of the first rows without an event time, in brackets."""
    nulls = frame.select(frame[at].isNull().alias("null")).toArrow().column("null")
    first = [str(place + 1) for place in np.flatnonzero(nulls.to_numpy())[: FEW + 1]]
    more = ", ..." if len(first) > FEW else ""
    return f" (row{'s' * (len(first) > 1)} {', '.join(first[:FEW])}{more}, counted from 1)"


def rows_of(frame: "DataFrame", of: Input, source: int) -> list[Row]:
    """Return the rows of a frame, all of which have an event time."""
    found = []
    for cells in frame.toArrow().to_pylist(maps_as_pydicts="strict"):
        moment = cells.pop(of.event_time)
        moment = moment.replace(tzinfo=dt.UTC) if of.is_ntz else moment
        time_us = (moment - EPOCH) // dt.timedelta(microseconds=1)
        found.append(Row(source, time_us, tuple(cells.values())))
    return found


def answers_of(rows: Sequence[Any]) -> list[Answer]:
    """Return collected rows as texts."""
    return [tuple([text_of(value) for value in row]) for row in rows]


def text_of(value: Any) -> str:
    """Return a value as a text that equal values share, whatever the order of a sum was.

    Other values of the same type have other texts. A text stands for itself, unless it looks like
    a null, or like a quoted text.
    """
    if isinstance(value, str):
        return repr(value) if value == "null" or value[:1] in ("'", '"') else value
    return _text_inside(value)


def _text_inside(value: Any) -> str:
    """Return a value inside another one as a text, in which every text is quoted."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value + 0.0:.12g}"
    if isinstance(value, dt.datetime):
        return str(value)
    if isinstance(value, dict):
        inside = sorted(f"{_text_inside(key)}: {_text_inside(each)}" for key, each in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, sql.Row):
        fields = zip(getattr(value, "__fields__", []), value, strict=True)
        return "{" + ", ".join(f"{name}={_text_inside(each)}" for name, each in fields) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text_inside, value)) + "]"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    return repr(value) if isinstance(value, str) else str(value)


def special(row: Row) -> bool:
    """Return whether a row has a null, NaN, or a text that is not plain."""
    return any(map(_is_special, row.values))


def strata_of(rows: Sequence[Row]) -> list[list[list[int]]]:
    """Return places of recorded rows from which streams begin in turn, as lists of alike ones.

    First those of special values of each column, then those of equal times, then all. A recording
    without some of them has all rows there.
    """
    specials: dict[tuple[int, str], list[int]] = {}
    for place, row in enumerate(rows):
        for column, value in enumerate(row.values):
            if _is_special(value):
                kind = "" if isinstance(value, str) and value else repr(value)
                specials.setdefault((column, kind), []).append(place)
    equal = [n for n, (row, after) in enumerate(pairwise(rows)) if row.time_us == after.time_us]
    every = [[*range(len(rows))]]
    return [[*specials.values()] or every, [equal] if equal else every, every]


def _is_special(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)
    return value is None or value == "" or (isinstance(value, str) and not value.isascii())
