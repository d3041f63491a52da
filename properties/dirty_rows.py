"""Dirty rows of two sides, and the files in which a user hands them in.

The cells of side R are texts. Those of side S have types, and where no value of a type stands for a
text, the cell is missing.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from properties.oracles.accounts import BAD_NUMBERS, BAD_TIMES, Row

PACKS = 24
BEGIN_S = 1_714_521_600  # 2024-05-01
NUMBERS = ("100", "-40", "60", "-60", "0", "-0.0", "0.5", "-0.125", "1e3", "-1000", "+7.", "65536")
"""Finite numbers whose sums are exact in every order."""
CANCELLING = (("60", "-60"), ("1e3", "-1000"), ("100", "-40", "-60"))
"""Numbers whose sums are often 0, as those of refunds are."""
DEVICES = ("a", "b", "c")
BAD_DEVICE = "z"
"""A device that never sends a number."""
SECOND_US = 1_000_000
BELOW = "below"
TEXT = pa.string(), pa.string()
TYPES = (
    (pa.float64(), pa.float64()),
    (pa.int64(), pa.float64()),
    (pa.decimal128(38, 6), pa.decimal128(38, 6)),
    (pa.timestamp("us", "UTC"), pa.float64()),
    (pa.timestamp("us"), pa.decimal128(38, 6)),
)
"""Types of the times and numbers of side S."""
Types = tuple[pa.DataType, pa.DataType]


def draw_types(seed: int) -> Types:
    """Return the types of the times and numbers of side S; those of side R are texts."""
    return Random(f"{seed}/types").choice(TYPES)


def _cell(text: str, kind: pa.DataType) -> object:
    """Return a text as a cell of a type, None if there is no such cell."""
    if kind == pa.string():
        return text or None
    try:
        number = Decimal(text)
        in_python: Decimal | float = number
        if not pa.types.is_decimal(kind):
            in_python = float(number) if pa.types.is_floating(kind) else int(number)
        cell = pa.scalar(
            int(number * SECOND_US) if pa.types.is_timestamp(kind) else in_python, kind
        )
    except (ArithmeticError, ValueError):
        return None
    return None if number.is_finite() and in_python != number else cell


def draw_rows(seed: int) -> list[list[Row]]:
    """Return the rows of two files in their order of arrival; side S is typed."""
    random = Random(seed)
    timed: list[tuple[int, Row]] = []
    for pack in range(PACKS):
        own = random.choice((random.sample(NUMBERS, 5), *CANCELLING))
        pace, now, sent = random.choice((1, 4)), 0, list[Row]()
        for number in range(random.randint(1, 40)):
            now += random.randint(0, pace)
            row = _draw_row(random, f"p{pack}", number, now, own)
            if sent and random.random() < 0.1:
                again = random.choice(sent)
                written = (str(number), f"{float(again.v):e}") if again.has_number else ()
                row = again._replace(v=random.choice((again.v, again.v, *written)))
            if row.fault is None:
                sent.append(row)
            timed.append((now, row))
    types = {"R": TEXT, "S": draw_types(seed)}
    rows = [_held(row, types[row.side]) for _, row in sorted(timed, key=lambda each: each[0])]
    cut = random.randint(len(rows) // 3, 2 * len(rows) // 3)
    before, after = rows[:cut], rows[cut:]
    return [before, [*after, _in_other_digits(before, Counter(row.source_id for row in rows))]]


def _in_other_digits(rows: Sequence[Row], times: Mapping[str, int]) -> Row:
    """Return the last row that comes once, has a number of 1 or more and no fault, written anew."""
    row = next(
        each
        for each in reversed(rows)
        if each.fault is None
        and each.has_number
        and times[each.source_id] == 1
        and abs(float(each.v)) >= 1
    )
    return row._replace(v=f"{float(row.v):e}")


def _held(row: Row, types: Types) -> Row:
    """Return a row without the cells that its types cannot hold."""
    at, v = (
        text if _cell(text, kind) else "" for text, kind in zip((row.at, row.v), types, strict=True)
    )
    return row._replace(at=at, v=v)


def _draw_row(random: Random, pack: str, number: int, now: int, own: Sequence[str]) -> Row:
    device = random.choice((*DEVICES, *DEVICES, BAD_DEVICE))
    behind = random.choice((0,) * 6 + (1, 9, 60))
    cells = BAD_NUMBERS if device == BAD_DEVICE or random.random() < 0.1 else own
    at, v = str(BEGIN_S + now - behind), random.choice(cells)
    row = Row(random.choice("RS"), f"{pack}-{number}", f"{pack}{device}", at, v)
    damage = random.choice(({"at": random.choice(BAD_TIMES)}, {"device": ""}, {"source_id": ""}))
    return row._replace(**damage) if random.random() < 0.1 else row


def write(folder: Path, number: int, rows: Sequence[Row], types: Types) -> None:
    """Write one file of a stream, and two copies that no source of files reads.

    By their column ``came`` the rows of a file came in the opposite order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.parquet"
    text = {name: [getattr(row, name) or None for row in rows] for name in Row._fields}
    held = {
        name: pa.array([_cell(each or "", kind) for each in text[name]], kind)
        for name, kind in zip(("at", "v"), types, strict=True)
    }
    came = pa.array([BEGIN_S + 10_000 * (number + 1) - at for at in range(len(rows))])
    origin = [json.dumps((row.at, row.v)) for row in rows]
    names = {"id": text["source_id"], "side": text["side"], "device": text["device"]}
    (folder / BELOW).mkdir(exist_ok=True)
    for each in (path, folder / f"_{number}.parquet", folder / BELOW / path.name):
        pq.write_table(pa.table({**names, **held, "origin": origin, "came": came}), each)
        os.utime(each, (1_000 + number, 1_000 + number))


def read(spark: SparkSession, folder: Path, types: Types) -> DataFrame:
    """Read a folder as a stream, one file a micro-batch."""
    at, v = (from_arrow_type(each, prefer_timestamp_ntz=True).simpleString() for each in types)
    schema = f"id string, side string, device string, at {at}, v {v}, origin string, came long"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
