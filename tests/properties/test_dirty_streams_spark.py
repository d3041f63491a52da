"""Every window of a dirty stream is right and exact, or says how many rows it lacks.

Several aggregates read two columns, in which different cells are no numbers. The queries restart in
the middle; one of them is killed there.

Expected answers are computed from the drawn cells with the standard library alone.
"""

import json
import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from properties import profiles
from properties.promised import Reached, promised
from spark_impl.aggregates import avg, count, median, sum_
from spark_impl.landed import LandedQueries
from spark_impl.over import over
from straggler.strategies import collect

STREAMS, PACKS = profiles.choose(40, nightly=120), profiles.choose(1, nightly=6)
BEGIN_S = 1_714_521_600  # 2024-05-01
SIZE_S, SLIDE_S = 10, 5
GOOD = (
    "100",
    "-40",
    "60",
    "-60",
    "0",
    "-0.0",
    "0.5",
    "-0.125",
    "1e3",
    "-1000",
    "+7.",
    "1e15",
    "-1e15",
)
CANCELLING = (["60", "-60"], ["1e3", "-1000"], ["100", "-40", "-60"])
"""Numbers whose sums are often 0, as those of refunds are."""
BAD = {"NaN": "NaN", "inf": "Infinity", "-Infinity": "-Infinity", "": None, "abc": "abc"} | {
    text: text for text in ("1e999", "1,5", "0x10", "9007199254740993")
}
"""Texts that are no finite numbers, and the text that the list of refused rows shows."""
BAD_TIMES = ("", "yesterday", "4e18")
WAITS: tuple[dict[str, Any], ...] = (
    {"delta": 0.2, "eps": 0.1},
    {"max_wait": "7 seconds", "k": 4, "corrections": True},
)
FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "total": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "middle": statistics.median_low,
    "rows": len,
}
COLUMNS = {"total": "v", "mean": "w", "middle": "v", "rows": None}
"""Column of each aggregate; None counts rows."""
KINDS = ("nothing accepted", "some refused", "negative, exact", "cancels, exact", "corrected")
"""Windows for which streams are drawn."""
Window: TypeAlias = tuple[str, str, int]
"""Stream, key and start in microseconds."""


class Line(NamedTuple):
    """A row of a CSV file."""

    stream: str
    source_id: int
    device: str
    at: str
    v: str
    w: str

    def cell(self, name: str) -> str | None:
        """Return the cell that an aggregate reads, if it reads one."""
        column = COLUMNS[name]
        return None if column is None else str(getattr(self, column))

    @property
    def is_timed(self) -> bool:
        """Whether the row has a time, and so windows."""
        return self.at not in BAD_TIMES


@st.composite
def batches(draw: st.DrawFn) -> list[list[Line]]:
    """Draw the micro-batches of a stream, without its name."""
    some = st.lists(st.sampled_from(GOOD), min_size=1, max_size=6)
    own = draw(some | st.sampled_from(CANCELLING))
    cells = st.sampled_from([*own * 12, *sorted(BAD)])
    bad_only = draw(st.sampled_from([[], ["z"]]))
    lines: list[Line] = []
    now, pace = 0, draw(st.sampled_from([1, 4]))
    for number in range(draw(st.integers(1, 40))):
        now += draw(st.integers(0, pace))
        if lines and draw(st.integers(0, 9)) == 0:
            lines.append(draw(st.sampled_from(lines)))  # delivered again
            continue
        device = draw(st.sampled_from(["refund", "b", "c", *bad_only]))
        late = draw(st.sampled_from([0, 0, 0, 1, 9, 30]))
        at = draw(st.sampled_from([*[str(BEGIN_S + max(now - late, 0))] * 12, *BAD_TIMES]))
        v, w = (draw(st.sampled_from(sorted(BAD)) if device == "z" else cells) for _ in "vw")
        lines.append(Line("", number, device, at, v, w))
    cut = draw(st.integers(0, len(lines)))
    return [lines[:cut], lines[cut:]]


def refunds() -> list[list[Line]]:
    """Return the micro-batches of a stream of payments that are all refunded at once."""
    numbered = enumerate(value for _ in range(10) for value in ("60", "-60"))
    lines = [
        Line("", number, "refund", str(BEGIN_S + 20 * (number // 2)), value, value)
        for number, value in numbered
    ]
    return [lines[:10], lines[10:]]


def windows_of(line: Line) -> Iterator[Window]:
    """Yield the windows of a row."""
    at = int(line.at)
    for start in range(at - at % SLIDE_S, at - SIZE_S, -SLIDE_S):
        yield line.stream, line.device, start * 1_000_000


def expected_windows(lines: Iterable[Line], name: str) -> dict[Window, tuple[list[float], int]]:
    """Return the accepted values of each window, and its number of refused rows."""
    accepted: dict[Window, dict[int, float]] = defaultdict(dict)
    refused = Counter[Window]()
    for line in lines:
        for window in windows_of(line) if line.is_timed else ():
            cell = line.cell(name)
            if cell in BAD:
                refused[window] += 1
            else:
                accepted[window][line.source_id] = 1.0 if cell is None else float(cell)
    return {
        window: ([*accepted.get(window, {}).values()], refused[window])
        for window in {*accepted, *refused}
    }


def open_queries(spark: SparkSession, folder: Path, wait: Mapping[str, Any]) -> LandedQueries:
    schema = "stream string, source_id string, device string, at string, v string, w string"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    begun = over(
        source.csv(str(folder / "in")),
        event_time="at",
        key="device",
        source_id="source_id",
        group_columns=["stream"],
        time_unit="s",
    )
    size, slide = f"{SIZE_S} seconds", f"{SLIDE_S} seconds"
    windows = begun.window(size, slide, tasks=2, dedup=True, **wait)
    chosen = (sum_("v"), avg("w"), median("v"), count())
    named = (each.alias(name) for each, name in zip(chosen, FUNCTIONS, strict=True))
    return windows.agg(*named).store_in(folder / "kept")


def write(folder: Path, number: int, lines: Iterable[Line]) -> None:
    """Write the file of a micro-batch."""
    path = folder / "in" / f"{number}.csv"
    path.parent.mkdir(exist_ok=True)
    quoted = (
        ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in line) for line in lines
    )
    path.write_text("".join(f"{line}\n" for line in quoted), encoding="utf-8")
    os.utime(path, (1_000 + number, 1_000 + number))


@pytest.mark.parametrize("number", range(PACKS))
@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(WAITS[0], id="slack"),
        pytest.param(WAITS[1], id="watermark", marks=pytest.mark.long),
    ],
)
@promised(*KINDS)
def test_every_window_is_exact_or_counts_what_it_lacks(
    reached: Reached,
    wait: dict[str, Any],
    number: int,
    spark: SparkSession,
    tmp_path: Path,
    seed: int,
) -> None:
    drawn = [refunds(), *collect(batches(), STREAMS, seed + number)]
    files: list[list[Line]] = [[], []]
    for place, own in enumerate(drawn):
        for file, lines in zip(files, own, strict=True):
            file.extend(line._replace(stream=f"s{place}") for line in lines)
    write(tmp_path, 0, files[0])
    open_queries(spark, tmp_path, wait).run_available()
    commits = tmp_path / "kept" / "checkpoints" / "answers" / "mean" / "commits"
    for path in (commits / "0", commits / ".0.crc"):
        path.unlink(missing_ok=True)  # killed just before Spark committed
    write(tmp_path, 1, files[1])
    queries = open_queries(spark, tmp_path, wait)
    queries.flush()
    lines = [line for file in files for line in file]
    seen = Counter[str]()
    assert_answers(queries, lines, seen)
    reached.add(seen)
    assert_listed(queries, lines)


def assert_answers(queries: LandedQueries, lines: Sequence[Line], seen: Counter[str]) -> None:
    """Compare every window of every aggregate."""
    rows = queries.results().drop("window").toArrow().to_pylist()
    largest = 1e15
    for name, function in FUNCTIONS.items():
        found = {
            (row["stream"], row["key"], row["start_us"]): row[name]
            for row in rows
            if row[name] is not None
        }
        expected = expected_windows(lines, name)
        assert found.keys() == expected.keys(), name
        for window, (values, refused) in expected.items():
            own = found[window]
            state = "incomplete" if refused else "exact"
            assert (own["n"], own["n_refused"], own["state"]) == (len(values), refused, state)
            if values:
                tolerance = 0.0 if name in ("middle", "rows") else 1e-9 * largest
                small = max(map(abs, values)) < largest
                exact = 0.0 if small and name == "total" else tolerance
                assert abs(own["value"] - function(values)) <= exact, (name, window)
            else:
                assert (own["value"], own["revision"], own["coverage"]) == (None, None, None)
            seen["nothing accepted"] += not values
            seen["some refused"] += bool(values) and bool(refused)
            seen["negative, exact"] += not refused and min(values, default=0) < 0
            seen["cancels, exact"] += not refused and not math.fsum(values) and any(values)
            seen["corrected"] += bool(own["revision"])


def assert_listed(queries: LandedQueries, lines: Sequence[Line]) -> None:
    """Compare the list of refused rows."""
    listed = queries.rejected().toArrow().to_pylist()
    unread = Counter((line.device, line.at or None) for line in lines if not line.is_timed)
    assert unread == Counter(
        (json.loads(row["row"])["device"], row["text"])
        for row in listed
        if row["stage"] == "landing"
    )
    timed = [line for line in lines if line.is_timed]
    for name, column in COLUMNS.items():
        own = [row for row in listed if row["aggregate"] == name]
        bad = Counter(
            (line.device, int(line.at) * 1_000_000, BAD[cell])
            for line in timed
            if (cell := line.cell(name)) in BAD
        )
        assert bad == Counter((row["key"], row["event_time_us"], row["text"]) for row in own)
        assert all(row["reason"] and row["column"] == column for row in own)
        assert queries.progress()[name].rejected == len(own) + unread.total()
